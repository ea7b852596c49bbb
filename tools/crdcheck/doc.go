// Package crdcheck tests the generated CRDs with the API server's own
// validation, without an API server: that it would accept the schemas and the
// cost of their rules, that the rules accept and refuse the objects of
// test/admission, and that package admission says the same of them.
//
// It lives in this module because the product does not need the API server's
// libraries. What it reads is outside of the module, which Go's test cache does
// not see: run with -count=1.
package crdcheck
