import { Buffer } from "node:buffer";
import { join } from "node:path";
import { ApiError } from "../api/api_error.ts";
import { builtIn, type ResolvedKind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import type { Client } from "../client/client.ts";
import type { Clock } from "../clock.ts";
import { fileFault, readLimited } from "../config/limited_file.ts";
import { checkCertificates, checkPair } from "../config/pem.ts";
import type { Logger } from "../logger.ts";
import { isJsonObject } from "../patch/json_value.ts";
import type { KeyPair } from "./certificates.ts";
import {
  type CertificateState,
  firstCertificates,
  nextCertificates,
  type RotationTimes,
  trustBundle,
} from "./certificate_rotation.ts";

/** Certificate that a listener serves, and the authorities that clients trust. */
export interface ServedCertificates {
  readonly serving: KeyPair;
  /** Certificates of the authorities, in PEM. */
  readonly bundle: string;
}

/** Source of certificates, which is read again from time to time. */
export interface CertificateSource {
  /**
   * Reads the certificates, and replaces those that expire.
   *
   * @throws {Error} If they cannot be read; the error has no part of them.
   */
  read(signal: AbortSignal): Promise<ServedCertificates>;
}

/** Secret with certificates, as the kind of Kubernetes. */
export interface CertificateSecret extends KubernetesObject {
  readonly type?: string | undefined;
  readonly data?: Readonly<Record<string, string>> | undefined;
}

export const SECRET: ResolvedKind<CertificateSecret> = builtIn(
  "Secret",
  "Namespaced",
);

/** Attempts to write the Secret while other replicas write it as well. */
const ATTEMPTS = 5;

/** What {@linkcode SecretCertificates} depend on. */
export interface SecretCertificatesDeps {
  readonly client: Client;
  /** Namespace and name of the Secret. */
  readonly key: { readonly namespace: string; readonly name: string };
  /** Names under which the listener is called. */
  readonly hosts: readonly string[];
  readonly times: RotationTimes;
  readonly clock: Clock;
  readonly log: Logger;
  /** Whether each registered webhook has this bundle. */
  readonly isRegistered: (bundle: string) => Promise<boolean>;
}

/**
 * Certificates in a Secret, with an authority of their own. Every replica reads
 * them. Any replica may take the next step of a rotation: of several that try, the
 * API server accepts one, since each names the version that it has read.
 */
export class SecretCertificates implements CertificateSource {
  readonly #deps: SecretCertificatesDeps;
  #last: CertificateState | undefined;

  constructor(deps: SecretCertificatesDeps) {
    this.#deps = deps;
  }

  async read(signal: AbortSignal): Promise<ServedCertificates> {
    const state = this.#last = await this.#state(signal);
    return { serving: state.serving, bundle: trustBundle(state) };
  }

  async #state(signal: AbortSignal): Promise<CertificateState> {
    const { client, key, log } = this.#deps;
    for (let attempt = 1;; attempt++) {
      const secret = await client.find(SECRET, key, { signal });
      const known = secret && readState(secret);
      if (secret !== undefined && known === undefined) {
        log.warn(
          "The Secret of the webhook certificates cannot be read, and is written again",
          { secret: `${key.namespace}/${key.name}` },
        );
      }
      const next = await this.#next(known);
      if (next === known && known !== undefined) return known;
      try {
        await this.#write(next, secret, signal);
        log.info("Wrote the webhook certificates", {
          secret: `${key.namespace}/${key.name}`,
        });
        return next;
      } catch (error) {
        // Another replica was faster: what it has written is read.
        const isRace = ApiError.is(error) &&
          (error.isConflict || error.isAlreadyExists);
        if (!isRace || attempt >= ATTEMPTS) throw error;
      }
    }
  }

  /** State to write; the known one if nothing is due. */
  async #next(known: CertificateState | undefined): Promise<CertificateState> {
    const { clock, hosts, times, isRegistered } = this.#deps;
    const context = { now: clock.wallTime(), hosts, times };
    // Clients trust the authorities of a Secret that someone has deleted.
    const state = known ?? this.#last;
    if (state === undefined) return firstCertificates(context);
    const next = nextCertificates(state, {
      ...context,
      isRegistered: state.next !== undefined &&
        await isRegistered(trustBundle(state)),
    });
    return next ?? state;
  }

  async #write(
    state: CertificateState,
    secret: CertificateSecret | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { client, key } = this.#deps;
    const data = { ...secret?.data, ...writtenState(state) };
    if (secret === undefined) {
      const metadata = { ...key, labels: LABELS };
      await client.create(
        SECRET,
        { metadata, type: "Opaque", data },
        { signal },
      );
    } else await client.replace(SECRET, { ...secret, data }, { signal });
  }
}

const LABELS = { "app.kubernetes.io/managed-by": "coracle" };

function writtenState(
  state: CertificateState,
): Readonly<Record<string, string>> {
  const { serving, ...rotation } = state;
  const texts = {
    "tls.crt": serving.certificate,
    "tls.key": serving.key,
    "ca.crt": trustBundle(state),
    "rotation.json": JSON.stringify(rotation),
  };
  return Object.fromEntries(
    Object.entries(texts).map((
      [name, text],
    ) => [name, Buffer.from(text).toString("base64")]),
  );
}

/** State that a Secret holds; undefined if it holds none that can be used. */
function readState(secret: CertificateSecret): CertificateState | undefined {
  const text = (name: string) =>
    Buffer.from(String(secret.data?.[name] ?? ""), "base64").toString();
  try {
    const { authority, next, previous } = JSON.parse(text("rotation.json"));
    const serving = { certificate: text("tls.crt"), key: text("tls.key") };
    checkUsable(serving);
    checkUsable(authority);
    if (next !== undefined) checkUsable(next);
    if (previous !== undefined) {
      checkCertificates(previous.certificate, "previous");
    }
    const times = [next, previous].filter((one) => one !== undefined);
    if (times.some(({ since }) => typeof since !== "number")) return undefined;
    return { serving, authority, next, previous };
  } catch {
    return undefined; // The error could quote a key.
  }
}

const PLACES = {
  certificate: "tls.crt",
  key: "tls.key",
  missing: { certificate: "tls.crt", key: "tls.key" },
};

/** Throws if a value is not a certificate in PEM and its key. */
function checkUsable(pair: unknown): asserts pair is KeyPair {
  if (!isJsonObject(pair)) throw new TypeError("Cannot use a pair: it is none");
  const { certificate, key } = pair;
  if (typeof certificate !== "string" || typeof key !== "string") {
    throw new TypeError("Cannot use a pair: it must have both parts");
  }
  checkPair({ certificate, key }, PLACES);
}

/** What {@linkcode ProcessCertificates} depend on. */
export interface ProcessCertificatesDeps {
  readonly clock: Clock;
  /** Names under which the server is called. */
  readonly hosts: readonly string[];
  readonly times: RotationTimes;
}

/** Certificates of an authority that no other process knows; nothing is stored. */
export class ProcessCertificates implements CertificateSource {
  readonly #deps: ProcessCertificatesDeps;
  #state: CertificateState | undefined;

  constructor(deps: ProcessCertificatesDeps) {
    this.#deps = deps;
  }

  read(): Promise<ServedCertificates> {
    const { clock, hosts, times } = this.#deps;
    const context = { now: clock.wallTime(), hosts, times, isRegistered: true };
    const before = this.#state;
    const state = this.#state = before === undefined
      ? firstCertificates(context)
      : nextCertificates(before, context) ?? before;
    return Promise.resolve({
      serving: state.serving,
      bundle: trustBundle(state),
    });
  }
}

/** Files with a certificate, its key and the authorities, such as those of cert-manager. */
export interface CertificateFiles {
  /** File with the certificate and its chain, in PEM. */
  readonly certFile: string;
  /** File with the private key, in PEM. */
  readonly keyFile: string;
  /**
   * File with the certificates of the authorities, in PEM; undefined if others tell
   * the clients whom to trust.
   */
  readonly caFile?: string | undefined;
}

/** Files of a mounted Secret of the type `kubernetes.io/tls` in a directory. */
export function filesIn(directory: string): CertificateFiles {
  return {
    certFile: join(directory, "tls.crt"),
    keyFile: join(directory, "tls.key"),
    caFile: join(directory, "ca.crt"),
  };
}

/** Server whose certificates they are. */
export type CertificateSubject = "webhook" | "metrics";

/** Maximum size of a file, in bytes. */
const MAX_FILE_BYTES = 1 << 20;

/**
 * Certificates in files that are replaced from time to time. While they cannot be
 * used, because a replacement is in progress, the ones before are.
 */
export class FileCertificates implements CertificateSource {
  readonly #files: CertificateFiles;
  readonly #subject: CertificateSubject;
  readonly #read: LastGood<ServedCertificates>;

  /** Creates a source that has read nothing yet. */
  constructor(
    files: CertificateFiles,
    { log, subject }: {
      readonly log: Logger;
      /** Owner of the certificates, for the log and errors. */
      readonly subject: CertificateSubject;
    },
  ) {
    this.#files = files;
    this.#subject = subject;
    this.#read = new LastGood(`${subject} certificates`, log);
  }

  async read(): Promise<ServedCertificates> {
    const { certFile, keyFile, caFile } = this.#files;
    return await this.#read.of(async () => {
      const [certificate = "", key = "", bundle = ""] = await Promise.all(
        [certFile, keyFile, caFile].map((file) =>
          file === undefined ? "" : contentOf(file, this.#subject)
        ),
      );
      checkPair({ certificate, key }, {
        certificate: certFile,
        key: keyFile,
        missing: { certificate: certFile, key: keyFile },
      });
      return { serving: { certificate, key }, bundle };
    });
  }
}

/** File with the certificates of authorities, which others may replace. */
export class AuthorityFile {
  readonly #file: string;
  readonly #read: LastGood<string>;

  constructor(file: string, log: Logger) {
    this.#file = file;
    this.#read = new LastGood("webhook callers", log);
  }

  /**
   * Reads the file.
   *
   * @throws {Error} If it cannot be used, and could not be before.
   */
  async read(): Promise<string> {
    return await this.#read.of(async () => {
      const text = await contentOf(this.#file, "webhook");
      checkCertificates(text, this.#file);
      return text;
    });
  }
}

/** What files had when they could be used last, while a replacement is not whole. */
class LastGood<T> {
  readonly #subject: string;
  readonly #log: Logger;
  #last: T | undefined;
  #isWarned = false;

  constructor(subject: string, log: Logger) {
    this.#subject = subject;
    this.#log = log;
  }

  async of(read: () => Promise<T>): Promise<T> {
    try {
      this.#last = await read();
      this.#isWarned = false;
    } catch (error) {
      if (this.#last === undefined) throw error;
      if (!this.#isWarned) {
        this.#log.warn(
          `The files of the ${this.#subject} cannot be used, so the previous certificates are`,
          { error },
        );
      }
      this.#isWarned = true;
    }
    return this.#last;
  }
}

async function contentOf(
  path: string,
  subject: CertificateSubject,
): Promise<string> {
  let fault = `more than ${MAX_FILE_BYTES} bytes`;
  try {
    const text = await readLimited(path, MAX_FILE_BYTES);
    if (text !== undefined) return text;
  } catch (error) {
    fault = fileFault(error);
  }
  throw new Error(
    `Cannot read the ${subject} certificates: ${path} must be a readable file: received ${fault}`,
  );
}
