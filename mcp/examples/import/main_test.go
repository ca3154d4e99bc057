package main

// The output is what mcp/README.md shows.
func Example() {
	main()
	// Output:
	// the server moves money: 1001 500
	// call_1 issue_refund executed
	// call_2 issue_refund already_done
	// 5.00 of order 1001 are on their way.
}
