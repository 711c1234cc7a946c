import type { Clock } from "../clock.ts";
import type { Logger } from "../logger.ts";
import type { Credential, CredentialSource } from "./cluster_config.ts";
import { fileFault, readLimited } from "./limited_file.ts";

/** Files with fields of a credential. */
export interface CredentialFiles {
  readonly token?: SecretFile | undefined;
  readonly certificate?: SecretFile | undefined;
  readonly key?: SecretFile | undefined;
}

export interface FileCredentialsDeps {
  /** Throws if certificate and key do not fit each other. */
  readonly check?: ((credential: Credential) => void) | undefined;
  readonly logger?: Logger | undefined;
}

/**
 * Credentials from files that are replaced from time to time. Returns the same
 * object until a file has changed. Certificate and key are replaced one after the
 * other: until both fit each other, the previous ones are used.
 */
export class FileCredentials implements CredentialSource {
  readonly #fixed: Credential;
  readonly #files: CredentialFiles;
  readonly #deps: FileCredentialsDeps;
  #current: Credential;
  /** Result of the last read, valid until a file has to be read again. */
  #lastRead: Promise<Credential> | undefined;
  /** Whether the files have a certificate and a key that do not fit. */
  #isMisfit = false;

  /**
   * Creates the credentials; no file is read yet.
   *
   * @param fixed Fields that do not change.
   * @param files Files of the other fields; they take precedence.
   */
  constructor(
    fixed: Credential,
    files: CredentialFiles,
    deps: FileCredentialsDeps = {},
  ) {
    this.#fixed = fixed;
    this.#files = files;
    this.#deps = deps;
    this.#current = fixed;
  }

  current(): Promise<Credential> {
    const { certificate, key, token } = this.#files;
    const isDue = token?.isDue || certificate?.isDue || key?.isDue;
    if (!isDue && this.#lastRead !== undefined) return this.#lastRead;
    return this.#read((file) => file.read());
  }

  refresh(refused: Credential): Promise<Credential> {
    return this.#current === refused
      ? this.#read((file) => file.readAgain())
      : this.current();
  }

  async #read(
    read: (file: SecretFile) => Promise<string>,
  ): Promise<Credential> {
    const { certificate, key, token } = this.#files;
    const fixed = this.#fixed;
    const next = this.#fitting({
      ...fixed,
      token: token === undefined ? fixed.token : await read(token),
      certificate: certificate === undefined
        ? fixed.certificate
        : await read(certificate),
      key: key === undefined ? fixed.key : await read(key),
    });
    const current = this.#current;
    const same = next.token === current.token &&
      next.certificate === current.certificate && next.key === current.key;
    if (!same) this.#current = next;
    if (!same || this.#lastRead === undefined) {
      this.#lastRead = Promise.resolve(this.#current);
    }
    return this.#current;
  }

  /** A credential with a checked pair: its own, or the one in use. */
  #fitting(next: Credential): Credential {
    const { certificate, key } = this.#current;
    const isNew = this.#lastRead === undefined ||
      next.certificate !== certificate || next.key !== key;
    const { check, logger } = this.#deps;
    try {
      if (isNew) check?.(next);
    } catch (error) {
      if (this.#lastRead === undefined) throw error;
      if (!this.#isMisfit) {
        logger?.warn(
          "A new client certificate or key cannot be used yet, so the previous ones are",
          { error },
        );
      }
      this.#isMisfit = true;
      return { ...next, certificate, key };
    }
    this.#isMisfit = false;
    return next;
  }
}

/** Maximum size of a file with a secret, in bytes. */
const MAX_FILE_BYTES = 1 << 20;
/** Time until a file is read again. */
const CACHE_LIFETIME_MS = 60_000;

export interface SecretFileDeps {
  /** Location that names the file, such as a field of a kubeconfig, for errors. */
  readonly origin: string;
  readonly clock: Clock;
  /** Throws if the content cannot be used. */
  readonly check?: ((content: string) => void) | undefined;
  readonly logger?: Logger | undefined;
}

/**
 * File with a secret that is replaced from time to time, such as a token that
 * expires. It is read again after a minute, or on request. If that fails, or the
 * new content cannot be used, the previous content is used, because a replacement
 * of the file may be in progress.
 */
export class SecretFile {
  readonly #path: string;
  readonly #deps: SecretFileDeps;
  #content: string | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<string> | undefined;

  constructor(path: string, deps: SecretFileDeps) {
    this.#path = path;
    this.#deps = deps;
  }

  /**
   * Returns the content of the file, trimmed.
   *
   * @throws {Error} If the file has never been readable and valid.
   */
  async read(): Promise<string> {
    return this.isDue || this.#content === undefined
      ? await this.readAgain()
      : this.#content;
  }

  /** Whether the file has to be read again. */
  get isDue(): boolean {
    const age = this.#deps.clock.now() - this.#readAt;
    return this.#content === undefined || age >= CACHE_LIFETIME_MS;
  }

  /** Reads the file now; concurrent calls share one read. */
  readAgain(): Promise<string> {
    return this.#reading ??= this.#load().finally(() => {
      this.#reading = undefined;
    });
  }

  async #load(): Promise<string> {
    const { check, clock, logger, origin } = this.#deps;
    this.#readAt = clock.now();
    const content = await this.#text();
    try {
      if (content instanceof Error) throw content;
      if (content !== this.#content) check?.(content);
      return this.#content = content;
    } catch (error) {
      if (this.#content === undefined) throw error;
      logger?.warn("A file cannot be read again, so its last content is used", {
        origin,
        error,
      });
      return this.#content;
    }
  }

  /** Text of the file, or the error of reading it. */
  async #text(): Promise<string | Error> {
    let fault: string;
    try {
      const text = await readLimited(this.#path, MAX_FILE_BYTES);
      const content = text?.trim();
      if (content) return content;
      fault = content === undefined
        ? `more than ${MAX_FILE_BYTES} bytes`
        : "0 characters";
    } catch (error) {
      fault = fileFault(error);
    }
    return new Error(
      `Cannot use ${this.#deps.origin}: ${this.#path} must be a readable file that is not empty: received ${fault}`,
    );
  }
}
