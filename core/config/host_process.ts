/** Part of the `process` global that the library uses. */
export interface HostProcess {
  readonly env: Readonly<Record<string, string | undefined>>;
  cwd(): string;
  on(signal: string, listener: () => void): unknown;
  off(signal: string, listener: () => void): unknown;
}

/**
 * Current process, from the global of that name, which all runtimes have.
 * Importing `node:process` would read all of its properties, and thus open the
 * standard streams of a program that only needs a variable.
 */
export const hostProcess: HostProcess =
  (globalThis as unknown as { readonly process: HostProcess }).process;
