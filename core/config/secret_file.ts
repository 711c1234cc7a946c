import { readFile } from "node:fs/promises";
import type { Clock } from "../clock.ts";

/** A token or certificate is small; more than this is something else. */
const MOST_BYTES = 1 << 20;
/** How long what a file said stays good, in milliseconds. */
const LIFETIME = 60_000;

/** Where a file was named, for errors. */
export interface SecretFileOptions {
  /** What names the file, such as a kubeconfig and a field in it. */
  readonly origin: string;
  readonly clock: Clock;
}

/**
 * A file whose content somebody changes from time to time, such as a token that
 * expires. It is read again after a minute, and at once when asked to. When a
 * later reading fails, the last content goes on to be used: whoever replaces
 * the file may be about to put it back.
 */
export class SecretFile {
  readonly #path: string;
  readonly #options: SecretFileOptions;
  #content: string | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<string> | undefined;

  constructor(path: string, options: SecretFileOptions) {
    this.#path = path;
    this.#options = options;
  }

  /**
   * What the file says, without white space around it.
   *
   * @throws {Error} If it cannot be read and never could be.
   */
  async read(): Promise<string> {
    const age = this.#options.clock.now() - this.#readAt;
    return this.#content !== undefined && age < LIFETIME
      ? this.#content
      : await this.readAgain();
  }

  /** Reads the file now; once for all who ask at the same time. */
  readAgain(): Promise<string> {
    return this.#reading ??= this.#load().finally(() => {
      this.#reading = undefined;
    });
  }

  async #load(): Promise<string> {
    this.#readAt = this.#options.clock.now();
    let fault: string;
    try {
      const content = (await readFile(this.#path, "utf8")).trim();
      if (content !== "" && content.length <= MOST_BYTES) {
        return this.#content = content;
      }
      fault = `${content.length} characters`;
    } catch (error) {
      fault = error instanceof Error && "code" in error
        ? String(error.code)
        : String(error);
    }
    if (this.#content !== undefined) return this.#content;
    throw new Error(
      `Cannot use ${this.#options.origin}: ${this.#path} must be a file with something in it: received ${fault}`,
    );
  }
}
