package settings

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Keys of the ConfigMap config-logging that are looked at.
const (
	keyLevel = "loglevel.controller"
	keyZap   = "zap-logger-config"
)

// levels are the names of log levels, the wordiest first. The last three are
// those of zap that lie above error; they count as error.
var levels = []string{"debug", "info", "warn", "error", "dpanic", "panic", "fatal"}

// Logging is how the log is written.
type Logging struct {
	Level    string // debug, info, warn or error
	Encoding string // console or json
}

// Logging returns what the data of the ConfigMap config-logging makes of flags
// and environment: loglevel.controller, or else the level of zap-logger-config.
// The errors name the key that cannot be used; then nothing of the data holds.
func (p Process) Logging(data map[string]string) (Logging, error) {
	out := Logging{Level: p.LogLevel, Encoding: p.LogEncoding}
	var zap struct {
		Level    string `json:"level"`
		Encoding string `json:"encoding"`
	}
	if text := data[keyZap]; text != "" {
		if err := json.Unmarshal([]byte(text), &zap); err != nil {
			return out, fmt.Errorf("%s: is not the JSON of a logger: %w", keyZap, err)
		}
	}
	next := out
	for _, from := range []struct{ key, level string }{{keyZap + ": level", zap.Level}, {keyLevel, data[keyLevel]}} {
		switch i := slices.Index(levels, from.level); {
		case from.level == "":
		case i < 0:
			return out, fmt.Errorf("%s: must be debug, info, warn or error, not %q", from.key, from.level)
		default:
			next.Level = levels[min(i, 3)]
		}
	}
	switch zap.Encoding {
	case "":
	case "console", "json":
		next.Encoding = zap.Encoding
	default:
		return out, fmt.Errorf("%s: encoding must be console or json, not %q", keyZap, zap.Encoding)
	}
	return next, nil
}
