// The types of the package: those of child_process, and what vspawn adds.

import type * as child_process from "node:child_process";
import type { Socket } from "node:net";
import type { PromiseWithChild } from "node:child_process";

type Resource = "cpu" | "fsize" | "data" | "stack" | "core" | "rss" | "nproc" | "nofile" | "memlock" | "as" | "locks" | "sigpending"
  | "msgqueue" | "nice" | "rtprio" | "rttime";

export interface TerminalSize {
  rows: number;
  columns: number;
}

/** The options that child_process has not. */
export interface Extensions {
  /** Resource limits: one value, or a soft and a hard one. `Infinity` removes a limit. */
  rlimits?: { [resource in Resource]?: number | readonly [soft: number, hard: number] };
  /** Added to the niceness. */
  nice?: number;
  /** The CPUs that the child may use. */
  cpus?: readonly number[];
  /** The directory of a cgroup (version 2), in which the child is created. */
  cgroup?: string;
  /** The signal that the child gets when the thread that started it ends. */
  pdeathsig?: NodeJS.Signals | number;
  chroot?: string;
  /** Set-user-id bits and file capabilities have no effect for the child and its descendants. */
  noNewPrivs?: boolean;
  umask?: number;
  /** The supplementary groups. With `uid` alone, root's are dropped. */
  groups?: readonly number[];
  /** 0 begins a process group. */
  processGroup?: number;
  /** Starts a session on a new terminal, which is also each stream that `stdio` does not set. */
  pty?: TerminalSize;
}

/** The errors of a child that did not start. */
export interface SpawnError extends NodeJS.ErrnoException {
  /** The step that failed: "exec", "chdir", "user", ... */
  stage: string;
  /** What failed, such as "chdir to /no/such". */
  action?: string;
  spawnargs?: string[];
}

export interface Terminal extends Socket {
  resize(size: TerminalSize): void;
}

interface Additions {
  /** Kills the child and all its descendants. */
  killTree(): boolean;
  /** The program's side of the terminal of the option `pty`. */
  readonly pty?: Terminal;
}

/** `send`, `disconnect` and `channel` are those of child_process, and have no effect. */
export interface ChildProcess extends child_process.ChildProcess, Additions {}
export declare const ChildProcess: { prototype: ChildProcess };

type WithoutStdio = child_process.SpawnOptions & Extensions & { stdio?: "pipe" | undefined; pty?: undefined };
type WithStreams = child_process.ChildProcessWithoutNullStreams & Additions;

export function spawn(file: string, options?: WithoutStdio): WithStreams;
export function spawn(file: string, args?: readonly string[], options?: WithoutStdio): WithStreams;
export function spawn(file: string, options: child_process.SpawnOptions & Extensions): ChildProcess;
export function spawn(file: string, args: readonly string[], options: child_process.SpawnOptions & Extensions): ChildProcess;

type Callback<Output> = (error: child_process.ExecFileException | null, stdout: Output, stderr: Output) => void;
type AsBuffer = { encoding: "buffer" | null };
type FileOptions = child_process.ExecFileOptions & Extensions;
type ShellOptions = child_process.ExecOptions & Extensions;
type Outputs<Output> = PromiseWithChild<{ stdout: Output; stderr: Output }>;

interface ExecFilePromise {
  (file: string, args: readonly string[] | undefined | null, options: FileOptions & AsBuffer): Outputs<Buffer>;
  (file: string, options: FileOptions & AsBuffer): Outputs<Buffer>;
  (file: string, args?: readonly string[] | null, options?: FileOptions): Outputs<string>;
  (file: string, options: FileOptions): Outputs<string>;
}

interface ExecPromise {
  (command: string, options: ShellOptions & AsBuffer): Outputs<Buffer>;
  (command: string, options?: ShellOptions): Outputs<string>;
}

export const execFile: {
  (file: string, args: readonly string[] | undefined | null, options: FileOptions & AsBuffer, callback?: Callback<Buffer>): ChildProcess;
  (file: string, args: readonly string[] | undefined | null, options: FileOptions, callback?: Callback<string>): ChildProcess;
  (file: string, options: FileOptions & AsBuffer, callback?: Callback<Buffer>): ChildProcess;
  (file: string, options: FileOptions, callback?: Callback<string>): ChildProcess;
  (file: string, args?: readonly string[] | null, callback?: Callback<string>): ChildProcess;
  (file: string, callback: Callback<string>): ChildProcess;
  __promisify__: ExecFilePromise;
};

/** Runs a command of `/bin/sh`; one that is a program and simple words, without the shell. */
export const exec: {
  (command: string, options: ShellOptions & AsBuffer, callback?: Callback<Buffer>): ChildProcess;
  (command: string, options: ShellOptions, callback?: Callback<string>): ChildProcess;
  (command: string, callback?: Callback<string>): ChildProcess;
  __promisify__: ExecPromise;
};

export const promises: { exec: ExecPromise; execFile: ExecFilePromise };
