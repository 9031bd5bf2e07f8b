// SPDX-License-Identifier: GPL-2.0-only

package backends

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var _ Backend = NewAMDGPU()

var job = Request{JobID: "job", Config: &BackendConfig{pids: []string{"17", "18"}}}

// command returns a backend whose command ends so, and what that is called with.
func command(t *testing.T, status string) (*AMDGPU, func() string) {
	dir := t.TempDir()
	path, called := filepath.Join(dir, "amdgpu-checkpoint"), filepath.Join(dir, "called")
	script := "#!/bin/sh\necho \"$@\" >>" + called + "\necho it fails\nexit " + status + "\n"
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return &AMDGPU{Command: path, Device: "/dev/null"}, func() string {
		text, _ := os.ReadFile(called)
		return strings.TrimSpace(string(text))
	}
}

func TestAJobIsSuspendedAndResumedAsOne(t *testing.T) {
	backend, called := command(t, "0")
	backend.Dir = "/data"
	if err := backend.Snapshot(context.Background(), job); err != nil {
		t.Fatal(err)
	}
	if err := backend.Restore(context.Background(), job); err != nil {
		t.Fatal(err)
	}
	if called() != "suspend --dir /data 17 18\nresume 17 18" {
		t.Fatal(called())
	}
}

func TestTheDeadlineIsTheCommands(t *testing.T) {
	backend, called := command(t, "0")
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Second)
	defer cancel()
	_ = backend.Snapshot(ctx, job)
	_ = backend.Restore(ctx, job)
	if !regexp.MustCompile(`^suspend --timeout 9\d 17 18\nresume --wait 9\d 17 18$`).MatchString(called()) {
		t.Fatal(called())
	}
	cancel()
	if backend.Snapshot(ctx, job) == nil || strings.Count(called(), "suspend") != 1 {
		t.Fatal("suspended after the end of the request")
	}
}

// The agent takes the deadline out of each request before it calls a backend.
func TestARestoreWithoutADeadlineWaitsAsLongAsTheBackendSays(t *testing.T) {
	backend, called := command(t, "0")
	backend.Wait = 90 * time.Second
	_ = backend.Snapshot(context.Background(), job)
	_ = backend.Restore(context.Background(), job)
	if called() != "suspend 17 18\nresume --wait 90 17 18" {
		t.Fatal(called())
	}
	if NewAMDGPU().Wait < time.Second {
		t.Fatal("no time to wait")
	}
}

func TestARestoreThatWaitsKeepsNobodyFromMakingRoom(t *testing.T) {
	backend, _ := command(t, "0")
	room := filepath.Join(t.TempDir(), "room")
	script := "#!/bin/sh\ncase $1 in suspend) touch " + room + " ;; esac\n" +
		"for i in $(seq 50); do [ -e " + room + " ] && exit 0; sleep 0.1; done\nexit 2\n"
	if err := os.WriteFile(backend.Command, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	restored := make(chan error)
	go func() { restored <- backend.Restore(context.Background(), job) }()
	time.Sleep(200 * time.Millisecond)
	if err := backend.Snapshot(context.Background(), job); err != nil {
		t.Fatal(err)
	}
	if err := <-restored; err != nil {
		t.Fatal(err)
	}
}

func TestAFailureHasTheCommandsWords(t *testing.T) {
	backend, _ := command(t, "2")
	for _, err := range []error{backend.Snapshot(context.Background(), job), backend.Restore(context.Background(), job)} {
		if err == nil || !strings.Contains(err.Error(), "status 2: it fails") {
			t.Fatal(err)
		}
	}
	// Suspended, but little is free; resumed, but a GPU was reset.
	backend, _ = command(t, "3")
	if err := backend.Snapshot(context.Background(), job); err != nil {
		t.Fatal(err)
	}
	if backend.Restore(context.Background(), job) == nil {
		t.Fatal("a reset is no success")
	}
}

func TestNothingIsCalledWithoutAProcess(t *testing.T) {
	backend, called := command(t, "0")
	if backend.Snapshot(context.Background(), Request{Config: &BackendConfig{}}) == nil || called() != "" {
		t.Fatal(called())
	}
}

func TestHealth(t *testing.T) {
	backend, _ := command(t, "0")
	if err := backend.HealthCheck(context.Background()); err != nil {
		t.Fatal(err)
	}
	backend.Device = "/nowhere"
	if backend.HealthCheck(context.Background()) == nil {
		t.Fatal("healthy without a GPU")
	}
	backend, _ = command(t, "1")
	if backend.HealthCheck(context.Background()) == nil {
		t.Fatal("healthy without a command")
	}
}
