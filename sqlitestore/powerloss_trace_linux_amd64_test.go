//go:build cgo

package sqlitestore_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The files of the store are written by SQLite, through libc, and by Go, which does without it. So the process is watched
// from outside, by ptrace, where both are seen alike; a filter lets only these system calls stop it.
var (
	watchedCalls = []uint64{
		unix.SYS_OPEN, unix.SYS_OPENAT, unix.SYS_MKDIR, unix.SYS_MKDIRAT, unix.SYS_UNLINK, unix.SYS_UNLINKAT,
		unix.SYS_WRITE, unix.SYS_PWRITE64, unix.SYS_FTRUNCATE, unix.SYS_FSYNC, unix.SYS_FDATASYNC,
	}
	// strangeCalls are those that the log has no words for: none may touch the files.
	strangeCalls = []uint64{
		unix.SYS_CREAT, unix.SYS_RENAME, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_LINK, unix.SYS_LINKAT, unix.SYS_SYMLINK,
		unix.SYS_SYMLINKAT, unix.SYS_RMDIR, unix.SYS_TRUNCATE, unix.SYS_FALLOCATE, unix.SYS_WRITEV, unix.SYS_PWRITEV,
		unix.SYS_PWRITEV2, unix.SYS_COPY_FILE_RANGE, unix.SYS_SENDFILE,
	}
)

// beWatched has every thread of this process stop at those calls from now on.
func beWatched() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	calls := slices.Concat(watchedCalls, strangeCalls)
	program := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}} // the number of the call
	for i, nr := range calls {
		program = append(program, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: uint8(len(calls) - i), K: uint32(nr)})
	}
	program = append(program,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_TRACE})
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	f := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	tid, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&f)))
	if errno != 0 || tid != 0 {
		return fmt.Errorf("filtering system calls: thread %d: %w", tid, errno)
	}
	return nil
}

// recorder writes down what a process does to the files below dir, and what it says in the file notes.
type recorder struct {
	dir, notes string
	log        []diskEvent
	live       map[string]int // the object of each name; the directory itself is object 0
	objects    int
	waiting    map[int]func(ok bool) // what to do when a thread's call has ended
	then       func(synced string)   // what others do when the process has synced something and goes on; nil: nothing
}

func newRecorder(dir, notes string) *recorder {
	return &recorder{dir: dir, notes: notes, live: map[string]int{".": 0}, waiting: map[int]func(bool){}}
}

var errNotWatched = errors.New("a process cannot be watched by ptrace here")

// run runs the program until it ends. What it prints goes to out.
func (r *recorder) run(args, env []string, out *os.File) error {
	runtime.LockOSThread() // a process is watched by one thread
	defer runtime.UnlockOSThread()
	pid, err := syscall.ForkExec(args[0], args, &syscall.ProcAttr{
		Env: env, Files: []uintptr{out.Fd(), out.Fd(), out.Fd()}, Sys: &syscall.SysProcAttr{Ptrace: true, Setpgid: true},
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errNotWatched, err)
	}
	err = r.watch(pid)
	for wait := error(nil); err != nil && (wait == nil || errors.Is(wait, unix.EINTR)); { // until nothing of it is left
		_ = unix.Kill(pid, unix.SIGKILL)
		_, wait = unix.Wait4(-pid, nil, unix.WALL, nil)
	}
	return err
}

// watch sees a process to its end.
func (r *recorder) watch(pid int) error {
	var ws unix.WaitStatus
	if _, err := unix.Wait4(pid, &ws, unix.WALL, nil); err != nil || !ws.Stopped() {
		return fmt.Errorf("%w: status %x: %w", errNotWatched, ws, err)
	}
	options := unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACESECCOMP | unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_EXITKILL
	if err := unix.PtraceSetOptions(pid, options); err != nil {
		return fmt.Errorf("%w: %w", errNotWatched, err)
	}
	started := map[int]bool{pid: true}
	tid, sig, resume := pid, 0, unix.PtraceCont
	for {
		if err := resume(tid, sig); err != nil && !errors.Is(err, unix.ESRCH) { // it may have been ended meanwhile
			return err
		}
		for ws = 0; !ws.Stopped(); {
			var err error
			if tid, err = unix.Wait4(-pid, &ws, unix.WALL, nil); err != nil && !errors.Is(err, unix.EINTR) {
				return err
			}
			if tid == pid && (ws.Exited() || ws.Signaled()) { // it is the last of its threads
				return endedWell(ws)
			}
		}
		var err error
		if sig, resume, err = r.stopped(tid, ws, started[tid]); err != nil {
			return err
		}
		started[tid] = true
	}
}

func endedWell(ws unix.WaitStatus) error {
	if ws.ExitStatus() != 0 {
		return fmt.Errorf("the process ended with status %x", ws)
	}
	return nil
}

// stopped is for a thread that has stopped. It gives the signal that the thread is to get, and how it goes on.
func (r *recorder) stopped(tid int, ws unix.WaitStatus, started bool) (sig int, resume func(int, int) error, err error) {
	var regs unix.PtraceRegs
	switch s := ws.StopSignal(); {
	case s == unix.SIGTRAP|0x80: // a call ends
		if err := unix.PtraceGetRegs(tid, &regs); err != nil {
			return 0, nil, err
		}
		r.waiting[tid](int64(regs.Rax) >= 0)
		delete(r.waiting, tid)
	case s == unix.SIGTRAP && ws.TrapCause() == unix.PTRACE_EVENT_SECCOMP: // a call begins
		if err := unix.PtraceGetRegs(tid, &regs); err != nil {
			return 0, nil, err
		}
		after, err := r.begins(tid, &regs)
		if err != nil {
			return 0, nil, err
		}
		if after != nil {
			r.waiting[tid] = after
			return 0, unix.PtraceSyscall, nil
		}
	case s == unix.SIGTRAP, s == unix.SIGSTOP && !started: // a thread has been made, and begins
	default:
		sig = int(s)
	}
	return sig, unix.PtraceCont, nil
}

// begins writes down a call: what changes content now, for some of it may be on the disk before the call ends, and what
// changes names or waits for the disk when it has ended.
func (r *recorder) begins(tid int, regs *unix.PtraceRegs) (after func(ok bool), err error) {
	switch regs.Orig_rax {
	case unix.SYS_OPEN:
		return r.opens(pathAt(tid, regs.Rdi), regs.Rsi), nil
	case unix.SYS_OPENAT:
		return r.opens(pathAt(tid, regs.Rsi), regs.Rdx), nil
	case unix.SYS_MKDIR:
		return r.makes(pathAt(tid, regs.Rdi), diskMadeDir), nil
	case unix.SYS_MKDIRAT:
		return r.makes(pathAt(tid, regs.Rsi), diskMadeDir), nil
	case unix.SYS_UNLINK:
		return r.removes(pathAt(tid, regs.Rdi)), nil
	case unix.SYS_UNLINKAT:
		return r.removes(pathAt(tid, regs.Rsi)), nil
	case unix.SYS_WRITE, unix.SYS_PWRITE64:
		return nil, r.writes(tid, regs)
	case unix.SYS_FTRUNCATE:
		if name, ok := r.name(pathOf(tid, regs.Rdi)); ok {
			r.add(diskEvent{kind: diskCut, path: name, at: int64(regs.Rsi)})
		}
	case unix.SYS_FSYNC, unix.SYS_FDATASYNC:
		name, ok := r.name(pathOf(tid, regs.Rdi))
		if !ok {
			return nil, nil
		}
		began := int64(len(r.log))
		return func(ok bool) {
			if !ok {
				return
			}
			r.add(diskEvent{kind: diskSynced, path: name, at: began})
			if r.then != nil {
				r.then(name)
			}
		}, nil
	default:
		for _, path := range []string{pathOf(tid, regs.Rdi), pathOf(tid, regs.Rsi), pathAt(tid, regs.Rdi), pathAt(tid, regs.Rsi)} {
			if strings.HasPrefix(path, r.dir) {
				return nil, fmt.Errorf("system call %d is used on %s: teach the recorder what it does", regs.Orig_rax, path)
			}
		}
	}
	return nil, nil
}

// name gives the path below dir of what is there.
func (r *recorder) name(path string) (string, bool) {
	name, err := filepath.Rel(r.dir, path)
	_, ok := r.live[name]
	return name, err == nil && ok
}

func (r *recorder) add(e diskEvent) {
	if e.kind != diskNoted {
		e.object = r.live[e.path]
		e.in = e.object
		if e.kind <= diskRemoved {
			e.in = r.live[filepath.Dir(e.path)]
		}
	}
	r.log = append(r.log, e)
}

func (r *recorder) opens(path string, flags uint64) func(ok bool) {
	name, exists := r.name(path)
	switch {
	case exists && flags&unix.O_TRUNC != 0:
		r.add(diskEvent{kind: diskCut, path: name})
	case flags&unix.O_CREAT != 0:
		return r.makes(path, diskMade)
	}
	return nil
}

func (r *recorder) makes(path string, kind diskKind) func(ok bool) {
	if !strings.HasPrefix(path, r.dir+"/") {
		return nil
	}
	return func(ok bool) {
		name, err := filepath.Rel(r.dir, path)
		if _, exists := r.live[name]; !ok || err != nil || exists {
			return
		}
		r.objects++
		r.live[name] = r.objects
		r.add(diskEvent{kind: kind, path: name})
	}
}

func (r *recorder) removes(path string) func(ok bool) {
	name, exists := r.name(path)
	if !exists {
		return nil
	}
	return func(ok bool) {
		if ok {
			r.add(diskEvent{kind: diskRemoved, path: name})
			delete(r.live, name)
		}
	}
}

func (r *recorder) writes(tid int, regs *unix.PtraceRegs) error {
	path := pathOf(tid, regs.Rdi)
	name, ok := r.name(path)
	if !ok && path != r.notes || regs.Rdx == 0 {
		return nil
	}
	data := make([]byte, regs.Rdx)
	if n := readMemory(tid, regs.Rsi, data); n < len(data) {
		return fmt.Errorf("%d bytes of %d that are written to %s can be read", n, len(data), path)
	}
	switch {
	case path == r.notes:
		r.add(diskEvent{kind: diskNoted, data: data})
	case regs.Orig_rax == unix.SYS_PWRITE64:
		r.add(diskEvent{kind: diskWrote, path: name, at: int64(regs.R10), data: data})
	default:
		return fmt.Errorf("%s is written to without an offset: teach the recorder where", path)
	}
	return nil
}

// pathOf is the path of a descriptor.
func pathOf(tid int, fd uint64) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", tid, int32(fd)))
	if err != nil {
		return ""
	}
	return path
}

// pathAt reads a path.
func pathAt(tid int, at uint64) string {
	b := make([]byte, unix.PathMax)
	b = b[:readMemory(tid, at, b)]
	path, _, _ := bytes.Cut(b, []byte{0})
	return string(path)
}

// readMemory reads memory of a thread that has stopped, up to where it ends.
func readMemory(tid int, at uint64, b []byte) int {
	if len(b) == 0 {
		return 0
	}
	local := []unix.Iovec{{Base: &b[0], Len: uint64(len(b))}}
	n, err := unix.ProcessVMReadv(tid, local, []unix.RemoteIovec{{Base: uintptr(at), Len: len(b)}}, 0)
	if err != nil {
		return 0
	}
	return n
}
