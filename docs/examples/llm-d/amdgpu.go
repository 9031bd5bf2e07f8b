// SPDX-License-Identifier: GPL-2.0-only

// A backend for llm-d's snapshot agent (llm-d-incubation/llm-d-rl-time-slicing): put this file into pkg/snapshot-agent/backends,
// and give the server NewAMDGPU() where it has NewCudaCheckpoint(). The agent's process needs root, the pids of the machine
// and /run/amdgpu-checkpoint, as in ../agent.yaml. Requests have to name the pids (explicit_target): where they do not, the
// agent asks NVIDIA's driver for them.

package backends

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// AMDGPU frees the GPU memory of jobs by amdgpu-checkpoint suspend, and gives it back by resume.
type AMDGPU struct {
	Command string // amdgpu-checkpoint, by its path or name
	Dir     string // where buffer data go; "": into memory
	Device  string // of the KFD

	Wait time.Duration // for memory that others use; the agent calls backends without a deadline
}

// NewAMDGPU returns the backend for the command in PATH.
func NewAMDGPU() *AMDGPU {
	return &AMDGPU{Command: "amdgpu-checkpoint", Device: "/dev/kfd", Wait: time.Minute}
}

// Snapshot suspends all processes of the job, or none.
func (a *AMDGPU) Snapshot(ctx context.Context, req Request) error {
	args := []string{"suspend"}
	if a.Dir != "" {
		args = append(args, "--dir", a.Dir)
	}
	err := a.run(ctx, args, "--timeout", 0, req)
	if exit, ok := err.(*failure); ok && exit.status == 3 {
		return nil // suspended, but less than half of its VRAM is free
	}
	return err
}

// Restore gives the job its memory, and lets it run. It waits for memory that others use until the context's deadline or,
// where there is none, for a.Wait. Other jobs can be suspended meanwhile.
func (a *AMDGPU) Restore(ctx context.Context, req Request) error {
	return a.run(ctx, []string{"resume"}, "--wait", a.Wait, req)
}

// HealthCheck says whether the command and the driver are there.
func (a *AMDGPU) HealthCheck(ctx context.Context) error {
	if _, err := os.Stat(a.Device); err != nil {
		return fmt.Errorf("there is no AMD GPU: %w", err)
	}
	if out, err := exec.CommandContext(ctx, a.Command, "--version").CombinedOutput(); err != nil {
		return fmt.Errorf("%s --version: %w: %s", a.Command, err, out)
	}
	return nil
}

type failure struct {
	what   string
	status int
	output []byte
}

func (f *failure) Error() string {
	return fmt.Sprintf("amdgpu-checkpoint %s ended with status %d: %s", f.what, f.status, f.output)
}

// run leaves the time to the command: one that is killed would have to be undone. The time is limit without a deadline; 0: none.
func (a *AMDGPU) run(ctx context.Context, args []string, timeOption string, limit time.Duration, req Request) error {
	pids := ExtractPIDStrings(req.Config)
	if len(pids) == 0 {
		return fmt.Errorf("job %s: at least one PID is required", req.JobID)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok {
		limit = time.Until(deadline)
		if limit < time.Second {
			limit = time.Second
		}
	}
	if limit > 0 {
		args = append(args, timeOption, strconv.Itoa(int(limit.Seconds())))
	}
	command := exec.Command(a.Command, append(args, pids...)...)
	output, err := command.CombinedOutput()
	if exit, ok := err.(*exec.ExitError); ok {
		return &failure{args[0], exit.ExitCode(), output}
	}
	return err
}
