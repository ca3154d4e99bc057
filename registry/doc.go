// Package registry says what a tool is and what a call of it means.
//
// A [Tool] has a name, Go types for input and output, and an [Effect]: whether running it twice is harmless. [Add]
// makes a strict JSON Schema from the input type, so that a model can be given the tool, and [Registry.Handler]
// answers the model's calls: it finds the tool, decodes the arguments strictly, gives the call an identity and runs
// it inside the middleware that it was made with. The package knows nothing of any SDK or database.
//
// Tags on the fields of an input type say what makes two calls mean the same operation:
//
//	once:"key"       part of the business key: at most one operation per key, across all runs
//	once:"-"         no part of the identity: free text, client clocks
//	once:"resource"  the thing that another tool can undo (see Tool.Undoes)
//	once:"secret"    kept out of what a ledger stores of the call and shows to people; it counts for the identity, by its hash
package registry
