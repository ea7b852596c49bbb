// Package crdcheck tests the generated CRDs with the API server's own
// validation, without an API server: that it would accept the schemas and the
// cost of their rules, and that the rules accept and refuse the objects of the
// tables in internal/admission/testdata.
//
// It lives in this module because the product does not need the API server's
// libraries. The tables are outside of the module, which Go's test cache does
// not see: run with -count=1.
package crdcheck
