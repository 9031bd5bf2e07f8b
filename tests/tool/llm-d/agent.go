// SPDX-License-Identifier: GPL-2.0-only

// What llm-d's snapshot agent has beside a backend, as far as docs/examples/llm-d uses it.

package backends

import "context"

type BackendConfig struct{ pids []string }

type Request struct {
	JobID  string
	Config *BackendConfig
}

type Backend interface {
	Snapshot(ctx context.Context, req Request) error
	Restore(ctx context.Context, req Request) error
	HealthCheck(ctx context.Context) error
}

func ExtractPIDStrings(config *BackendConfig) []string { return config.pids }
