import type { Credential, CredentialSource } from "./cluster_config.ts";
import type { SecretFile } from "./secret_file.ts";

/** The parts of a credential that stand in files. */
export interface CredentialFiles {
  readonly token?: SecretFile | undefined;
  readonly certificate?: SecretFile | undefined;
  readonly key?: SecretFile | undefined;
}

/**
 * Credentials of which parts stand in files that somebody replaces from time to
 * time. The same object is given as long as no file has changed.
 */
export class FileCredentials implements CredentialSource {
  readonly #fixed: Credential;
  readonly #files: CredentialFiles;
  #present: Credential;

  /**
   * @param fixed The parts that do not change.
   * @param files The parts that may; they stand before the fixed ones.
   */
  constructor(fixed: Credential, files: CredentialFiles) {
    this.#fixed = fixed;
    this.#files = files;
    this.#present = fixed;
  }

  current(): Promise<Credential> {
    return this.#read((file) => file.read());
  }

  refresh(refused: Credential): Promise<Credential> {
    return this.#present === refused
      ? this.#read((file) => file.readAgain())
      : this.current();
  }

  async #read(
    read: (file: SecretFile) => Promise<string>,
  ): Promise<Credential> {
    const { certificate, key, token } = this.#files;
    const fixed = this.#fixed;
    const next = {
      ...fixed,
      token: token === undefined ? fixed.token : await read(token),
      certificate: certificate === undefined
        ? fixed.certificate
        : await read(certificate),
      key: key === undefined ? fixed.key : await read(key),
    };
    const present = this.#present;
    const same = next.token === present.token &&
      next.certificate === present.certificate && next.key === present.key;
    if (!same) this.#present = next;
    return this.#present;
  }
}
