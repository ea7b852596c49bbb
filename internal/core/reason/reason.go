// Package reason holds the answers to "why not": why a pod has no place, and
// why a pool cannot give it one.
//
// It imports the standard library only. A reason is a small value with a code
// for programs and words for people; who publishes it is not its business.
package reason

import (
	"bytes"
	"encoding/json"
)

// Reason says why something is not done.
type Reason interface {
	// Code is a fixed word for programs, e.g. "LabelUndefined".
	Code() string
	// String says what is wrong, where, and what to do about it.
	String() string
}

// marshal writes a reason as {"code":…, "text":…, and its fields}.
func marshal(r Reason, fields any) ([]byte, error) {
	head, err := json.Marshal(struct {
		Code string `json:"code"`
		Text string `json:"text"`
	}{r.Code(), r.String()})
	if err != nil {
		return nil, err
	}
	tail, err := json.Marshal(fields)
	if err != nil || len(tail) <= 2 {
		return head, err
	}
	return bytes.Join([][]byte{head[:len(head)-1], tail[1:]}, []byte(",")), nil
}

// Texts returns the words of each reason.
func Texts(reasons []Reason) []string {
	out := make([]string, len(reasons))
	for i, r := range reasons {
		out[i] = r.String()
	}
	return out
}
