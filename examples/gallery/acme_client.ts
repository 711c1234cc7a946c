/**
 * The part of ACME (RFC 8555) that `acme_issuer.ts` needs: an account, orders,
 * http-01 challenges and certificates, with keys on the curve P-256.
 */
import { Buffer } from "node:buffer";
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
} from "node:crypto";
import { z } from "zod";

/** Function with the signature of `fetch`, which a test replaces. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

const Directory = z.object({
  newNonce: z.url(),
  newAccount: z.url(),
  newOrder: z.url(),
});
/** Problem document (RFC 7807). */
export interface Problem {
  readonly type?: string | undefined;
  readonly detail?: string | undefined;
}
const Problem: z.ZodType<Problem> = z.object({
  type: z.string(),
  detail: z.string(),
}).partial();
/** Order of a certificate. */
export interface Order {
  readonly status: "pending" | "ready" | "processing" | "valid" | "invalid";
  readonly identifiers: readonly { readonly value: string }[];
  readonly authorizations: readonly string[];
  readonly finalize: string;
  /** URL of the certificate, when it is there. */
  readonly certificate?: string | undefined;
}
const Order: z.ZodType<Order> = z.object({
  status: z.enum(["pending", "ready", "processing", "valid", "invalid"]),
  identifiers: z.array(z.object({ value: z.string() })),
  authorizations: z.array(z.url()),
  finalize: z.url(),
  certificate: z.url().optional(),
});
/** Way to prove that a name is ours. */
export interface Challenge {
  readonly type: string;
  readonly url: string;
  readonly status: string;
  readonly token?: string | undefined;
  readonly error?: Problem | undefined;
}
const Authorization = z.object({
  challenges: z.array(z.object({
    type: z.string(),
    url: z.url(),
    status: z.string(),
    token: z.string().regex(/^[\w-]{1,200}$/).optional(),
    error: Problem.optional(),
  })),
});

/** Answer of an ACME server that is a problem document. */
export class AcmeError extends Error {
  readonly status: number;
  readonly type: string | undefined;

  constructor(action: string, status: number, { type, detail }: Problem) {
    const why = detail ?? type ?? `the server answers ${status}`;
    super(`Cannot ${action}: ${why.slice(0, 500)}`);
    this.status = status;
    this.type = type;
  }
}

/** Creates a private key, as PEM. */
export function newKey(): string {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

/** Answer to an http-01 challenge: the same for every order of an account. */
export function challengeAnswer(token: string, accountKey: string): string {
  return `${token}.${thumbprint(jwkOf(createPrivateKey(accountKey)))}`;
}

/** Account at an ACME server. */
export class AcmeAccount {
  readonly #key: KeyObject;
  readonly #send: Fetch;
  readonly #signal: AbortSignal;
  readonly #urls: z.infer<typeof Directory>;
  #account: string | undefined;
  #nonce: string | undefined;

  private constructor(
    key: string,
    send: Fetch,
    signal: AbortSignal,
    urls: z.infer<typeof Directory>,
  ) {
    this.#key = createPrivateKey(key);
    this.#send = send;
    this.#signal = signal;
    this.#urls = urls;
  }

  /** Opens the account of a key; the server creates it if it is new. */
  static async open(
    { directory, key, email, send, signal }: {
      readonly directory: string;
      readonly key: string;
      readonly email?: string | undefined;
      readonly send: Fetch;
      readonly signal: AbortSignal;
    },
  ): Promise<AcmeAccount> {
    const response = await send(directory, { signal });
    if (!response.ok) throw await problem("read the directory", response);
    const urls = Directory.parse(await response.json());
    const account = new AcmeAccount(key, send, signal, urls);
    const { headers } = await account.#post(
      "open the account",
      urls.newAccount,
      {
        termsOfServiceAgreed: true,
        ...(email !== undefined && { contact: [`mailto:${email}`] }),
      },
    );
    account.#account = headers.get("location") ?? undefined;
    return account;
  }

  /** Orders a certificate. @returns URL of the order. */
  async newOrder(dnsNames: readonly string[]): Promise<string> {
    const { headers } = await this.#post(
      "order a certificate",
      this.#urls.newOrder,
      { identifiers: dnsNames.map((value) => ({ type: "dns", value })) },
    );
    return z.url().parse(headers.get("location"));
  }

  /** Reads an order; undefined if the server has forgotten it. */
  async order(url: string): Promise<Order | undefined> {
    try {
      return Order.parse(await this.#read("read the order", url));
    } catch (error) {
      if (error instanceof AcmeError && error.status === 404) return undefined;
      throw error;
    }
  }

  /** The http-01 challenges of an order, one for each name. */
  async challenges(order: Order): Promise<readonly Challenge[]> {
    const found = order.authorizations.map(async (url) => {
      const { challenges } = Authorization.parse(
        await this.#read("read an authorization", url),
      );
      return challenges.find(({ type }) => type === "http-01") ?? [];
    });
    return (await Promise.all(found)).flat();
  }

  /** Says that the answer to a challenge can be fetched. */
  async accept(challenge: Challenge): Promise<void> {
    await this.#post("answer a challenge", challenge.url, {});
  }

  /** Sends the request for the certificate of an order that is ready. */
  async finalize(
    order: Order,
    dnsNames: readonly string[],
    key: string,
  ): Promise<void> {
    const csr = certificateRequest(dnsNames, key).toString("base64url");
    await this.#post("finalize the order", order.finalize, { csr });
  }

  /** Downloads a certificate with its chain, as PEM. */
  async download(url: string): Promise<string> {
    return (await this.#post("download the certificate", url, undefined)).text;
  }

  async #read(action: string, url: string): Promise<unknown> {
    return JSON.parse((await this.#post(action, url, undefined)).text);
  }

  /** Sends a signed request; without a payload it reads. */
  async #post(
    action: string,
    url: string,
    payload: object | undefined,
  ): Promise<{ readonly headers: Headers; readonly text: string }> {
    for (let attempt = 1;; attempt++) {
      const response = await this.#send(url, {
        method: "POST",
        headers: { "content-type": "application/jose+json" },
        body: this.#signed(url, payload, await this.#takeNonce()),
        signal: this.#signal,
      });
      this.#nonce = response.headers.get("replay-nonce") ?? undefined;
      if (response.ok) {
        return { headers: response.headers, text: await response.text() };
      }
      const error = await problem(action, response);
      // A nonce may be too old; the answer has a new one.
      if (attempt === 3 || !error.type?.endsWith(":badNonce")) throw error;
    }
  }

  async #takeNonce(): Promise<string> {
    let nonce = this.#nonce;
    this.#nonce = undefined;
    if (nonce === undefined) {
      const { headers } = await this.#send(this.#urls.newNonce, {
        method: "HEAD",
        signal: this.#signal,
      });
      nonce = headers.get("replay-nonce") ?? undefined;
    }
    return z.string().parse(nonce);
  }

  /** JSON Web Signature of a request (RFC 7515). */
  #signed(url: string, payload: object | undefined, nonce: string): string {
    const identity = this.#account === undefined
      ? { jwk: jwkOf(this.#key) }
      : { kid: this.#account };
    const head = base64url({ alg: "ES256", nonce, url, ...identity });
    const body = payload === undefined ? "" : base64url(payload);
    const signature = sign("sha256", Buffer.from(`${head}.${body}`), {
      key: this.#key,
      dsaEncoding: "ieee-p1363",
    }).toString("base64url");
    return JSON.stringify({ protected: head, payload: body, signature });
  }
}

async function problem(action: string, response: Response): Promise<AcmeError> {
  const body = await response.json().catch(() => undefined);
  const { success, data } = Problem.safeParse(body);
  return new AcmeError(action, response.status, success ? data : {});
}

function base64url(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

/** Public key with its fields in the order that the thumbprint needs. */
function jwkOf(key: KeyObject): object {
  const { crv, kty, x, y } = createPublicKey(key).export({ format: "jwk" });
  return { crv, kty, x, y };
}

/** Thumbprint of a public key (RFC 7638). */
export function thumbprint(jwk: object): string {
  return createHash("sha256").update(JSON.stringify(jwk)).digest("base64url");
}

/** Request for a certificate (PKCS #10), in DER. */
function certificateRequest(dnsNames: readonly string[], key: string): Buffer {
  const privateKey = createPrivateKey(key);
  const info = sequence(
    der(0x02, Buffer.of(0)),
    sequence(), // The names are in the extension.
    createPublicKey(privateKey).export({ type: "spki", format: "der" }),
    der(
      0xa0,
      sequence(
        EXTENSION_REQUEST,
        der(
          0x31,
          sequence(
            sequence(
              SUBJECT_ALT_NAME,
              der(
                0x04,
                sequence(
                  ...dnsNames.map((name) => der(0x82, Buffer.from(name))),
                ),
              ),
            ),
          ),
        ),
      ),
    ),
  );
  const signature = sign("sha256", info, privateKey);
  return sequence(
    info,
    sequence(ECDSA_WITH_SHA256),
    der(0x03, Buffer.of(0), signature),
  );
}

/** Object identifiers 1.2.840.113549.1.9.14, 2.5.29.17 and 1.2.840.10045.4.3.2. */
const EXTENSION_REQUEST = Buffer.from("06092a864886f70d01090e", "hex");
export const SUBJECT_ALT_NAME: Buffer = Buffer.from("0603551d11", "hex");
export const ECDSA_WITH_SHA256: Buffer = Buffer.from(
  "06082a8648ce3d040302",
  "hex",
);

export function sequence(...parts: readonly Uint8Array[]): Buffer {
  return der(0x30, ...parts);
}

/** Value in DER: its tag, its length and its content. */
export function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 0x80
    ? [length]
    : length < 0x100
    ? [0x81, length]
    : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.of(tag, ...size), content]);
}
