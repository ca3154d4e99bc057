// Package uitest drives the operator's pages in a headless Chromium. It is a module of its own, so that nobody else gets what
// it depends on: make ui runs it.
package uitest
