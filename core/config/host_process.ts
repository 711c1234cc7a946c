/** What is used of the process that this runs in. */
export interface HostProcess {
  /** The environment variables. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The working folder. */
  cwd(): string;
  /** Listens for a signal. */
  on(signal: string, listener: () => void): unknown;
  /** Listens no more. */
  off(signal: string, listener: () => void): unknown;
}

/**
 * The process that this runs in.
 *
 * All runtimes have it as a global, which is what is used here: importing
 * `node:process` reads every property of it, and so opens the standard streams
 * of a program that only wants a variable.
 */
export const hostProcess: HostProcess =
  (globalThis as unknown as { readonly process: HostProcess }).process;
