/**
 * Small ACME server (RFC 8555) in this process, for the test of `acme_issuer.ts`.
 * It checks signatures, nonces, challenges and requests, and issues certificates
 * that nobody trusts.
 */
import { Buffer } from "node:buffer";
import {
  createPublicKey,
  generateKeyPairSync,
  type JsonWebKey,
  randomBytes,
  sign,
  verify,
} from "node:crypto";
import {
  der,
  ECDSA_WITH_SHA256,
  sequence,
  SUBJECT_ALT_NAME,
  thumbprint,
} from "./acme_client.ts";

const URL_OF = "http://acme.test";
const DAY_MS = 86_400_000;

interface Order {
  status: string;
  readonly identifiers: readonly { readonly value: string }[];
  certificate?: string;
}

interface Challenge {
  status: string;
  readonly token: string;
  readonly order: number;
  error?: { detail: string };
}

/** Body of an answer; `text` is sent as it is, `location` as a header. */
type Answer =
  & { readonly location?: string; readonly text?: string }
  & Readonly<Record<string, unknown>>;

/** Key of an account, by its URL. */
type Keys = Map<string, JsonWebKey>;

/** ACME server with the signature of `fetch`. */
export class AcmeServer {
  /** Asks a name for the answer to a token, as over HTTP. */
  ask: (name: string, token: string, expected: string) => string | undefined =
    () => undefined;
  /** Time of the certificates. */
  now: () => number = Date.now;
  /** Days for which a certificate is valid. */
  validDays = 90;
  /** Whether it does not answer. */
  isDown = false;
  /** Number of certificates so far. */
  issued = 0;
  /** Number of orders so far. */
  get orders(): number {
    return this.#orders.length;
  }
  readonly #authority = generateKeyPairSync("ec", { namedCurve: "P-256" });
  readonly #nonces: Set<string> = new Set();
  readonly #accounts: Keys = new Map();
  readonly #orders: Order[] = [];
  readonly #challenges: Challenge[] = [];
  readonly #certificates: string[] = [];

  readonly fetch = (url: string, init: RequestInit): Promise<Response> =>
    Promise.resolve(this.#answer(url, init));

  #answer(url: string, { method = "GET", body }: RequestInit): Response {
    if (this.isDown) return new Response(null, { status: 503 });
    const nonce = randomBytes(12).toString("hex");
    this.#nonces.add(nonce);
    const headers = { "replay-nonce": nonce };
    if (method === "HEAD") return new Response(null, { headers });
    const { pathname } = new URL(url);
    if (pathname === "/directory") {
      return Response.json({
        newNonce: `${URL_OF}/nonce`,
        newAccount: `${URL_OF}/account`,
        newOrder: `${URL_OF}/order`,
      });
    }
    try {
      const { payload, account } = this.#checked(url, String(body));
      const [, what = "", id] = pathname.split("/");
      const answer = this.#routes[what]?.(Number(id), payload, account);
      if (answer === undefined) {
        return Response.json({ detail: "unknown" }, { status: 404, headers });
      }
      const { location, ...value } = answer;
      return new Response(
        typeof value.text === "string" ? value.text : JSON.stringify(value),
        { headers: { ...headers, ...(location && { location }) } },
      );
    } catch (error) {
      const { message } = error as Error;
      const type = `urn:ietf:params:acme:error:${
        message === "bad nonce" ? "badNonce" : "malformed"
      }`;
      return Response.json({ type, detail: message }, { status: 400, headers });
    }
  }

  /** Checks the signature of a request. */
  #checked(
    url: string,
    body: string,
  ): { payload: Record<string, unknown>; account: string } {
    const { protected: head, payload, signature } = JSON.parse(body);
    const read = (part: string) =>
      part === "" ? {} : JSON.parse(Buffer.from(part, "base64url").toString());
    const { alg, jwk, kid, nonce, url: signed } = read(head);
    if (!this.#nonces.delete(nonce)) throw new Error("bad nonce");
    const key = jwk ?? this.#accounts.get(kid);
    const isSigned = key !== undefined && alg === "ES256" && signed === url &&
      verify(
        "sha256",
        Buffer.from(`${head}.${payload}`),
        {
          key: createPublicKey({ key, format: "jwk" }),
          dsaEncoding: "ieee-p1363",
        },
        Buffer.from(signature, "base64url"),
      );
    if (!isSigned) throw new Error("the signature is wrong");
    const account = kid ?? `${URL_OF}/accounts/${thumbprint(jwk)}`;
    if (jwk) this.#accounts.set(account, jwk);
    return { payload: read(payload), account };
  }

  readonly #routes: Readonly<
    Record<
      string,
      (
        id: number,
        payload: Record<string, unknown>,
        account: string,
      ) => Answer | undefined
    >
  > = {
    account: (_id, _payload, location) => ({ location, status: "valid" }),
    order: (_id, { identifiers }) => {
      const order = this.#orders.length;
      this.#orders.push({
        status: "pending",
        identifiers: identifiers as Order["identifiers"],
      });
      const token = randomBytes(16).toString("base64url");
      this.#challenges.push({ status: "pending", token, order });
      return { location: `${URL_OF}/orders/${order}` };
    },
    orders: (id) => {
      const order = this.#orders[id];
      if (order?.status === "processing") this.#issue(order);
      return order && {
        ...order,
        authorizations: [`${URL_OF}/authorizations/${id}`],
        finalize: `${URL_OF}/finalize/${id}`,
      };
    },
    authorizations: (id) => ({
      status: this.#challenges[id]?.status,
      challenges: [{
        ...this.#challenges[id],
        type: "http-01",
        url: `${URL_OF}/challenge/${id}`,
      }],
    }),
    challenge: (id, _payload, account) => {
      const challenge = this.#challenges[id] as Challenge;
      const order = this.#orders[id] as Order;
      const { token } = challenge;
      const expected = `${token}.${
        thumbprint(sorted(this.#accounts, account))
      }`;
      const wrong = order.identifiers.find(({ value }) =>
        this.ask(value, token, expected) !== expected
      );
      challenge.status = wrong ? "invalid" : "valid";
      if (wrong) {
        challenge.error = { detail: `${wrong.value} gives a wrong answer` };
      }
      order.status = wrong ? "invalid" : "ready";
      return {};
    },
    finalize: (id, { csr }) => {
      const order = this.#orders[id] as Order;
      this.#requests.set(order, Buffer.from(String(csr), "base64url"));
      order.status = "processing";
      return {};
    },
    certificates: (id) => ({ text: this.#certificates[id] as string }),
  };
  readonly #requests: Map<Order, Buffer> = new Map();

  #issue(order: Order): void {
    const key = publicKeyOf(this.#requests.get(order) as Buffer);
    const utc = (time: number) =>
      der(
        0x18,
        Buffer.from(
          new Date(time).toISOString().replace(/[-:T]|\.\d+/g, ""),
        ),
      );
    const info = sequence(
      der(0xa0, der(0x02, Buffer.of(2))),
      der(0x02, Buffer.of(1, this.issued++ & 0x7f)),
      sequence(ECDSA_WITH_SHA256),
      sequence(),
      sequence(utc(this.now()), utc(this.now() + this.validDays * DAY_MS)),
      sequence(),
      key,
      der(
        0xa3,
        sequence(sequence(
          SUBJECT_ALT_NAME,
          der(
            0x04,
            sequence(
              ...order.identifiers.map(({ value }) =>
                der(0x82, Buffer.from(value))
              ),
            ),
          ),
        )),
      ),
    );
    const certificate = sequence(
      info,
      sequence(ECDSA_WITH_SHA256),
      der(
        0x03,
        Buffer.of(0),
        sign("sha256", info, this.#authority.privateKey),
      ),
    );
    const lines = certificate.toString("base64").replace(/.{64}/g, "$&\n");
    order.certificate = `${URL_OF}/certificates/${this.#certificates.length}`;
    order.status = "valid";
    this.#certificates.push(
      `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
    );
  }
}

function sorted(accounts: Keys, account: string): object {
  const { crv, kty, x, y } = accounts.get(account) ?? {};
  return { crv, kty, x, y };
}

/** Public key of a request for a certificate, whose signature is checked. */
function publicKeyOf(request: Buffer): Buffer {
  const [info, , signature] = partsOf(contentOf(request));
  const key = partsOf(contentOf(info as Buffer))[2] as Buffer;
  const isSigned = verify(
    "sha256",
    info as Buffer,
    createPublicKey({ key, format: "der", type: "spki" }),
    contentOf(signature as Buffer).subarray(1),
  );
  if (!isSigned) throw new Error("the request is not signed by its key");
  return key;
}

/** Number of bytes of the tag and the length, and of the content. */
function sizesOf(value: Buffer): readonly [number, number] {
  const first = value[1] as number;
  if (first < 0x80) return [2, first];
  const digits = first & 0x7f;
  return [2 + digits, value.readUIntBE(2, digits)];
}

function contentOf(value: Buffer): Buffer {
  const [head, length] = sizesOf(value);
  return value.subarray(head, head + length);
}

function partsOf(content: Buffer): readonly Buffer[] {
  const parts: Buffer[] = [];
  for (let at = 0; at < content.length;) {
    const [head, length] = sizesOf(content.subarray(at));
    parts.push(content.subarray(at, at + head + length));
    at += head + length;
  }
  return parts;
}
