import { Buffer } from "node:buffer";
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  sign,
  verify,
} from "node:crypto";
import type { Clock } from "../../core/clock.ts";
import { isJsonObject, type JsonObject } from "../../core/patch/json_value.ts";
import type { Random } from "../random.ts";
import { accountGroups, accountUser, type User } from "../request/user.ts";
import type { Store } from "../storage/store.ts";
import { storageKey } from "../storage/stored_object.ts";
import { goList } from "./policy_rules.ts";

/** Default issuer of the tokens, which is also the audience of the server. */
const ISSUER = "https://kubernetes.default.svc";

/** Tolerance for clocks that differ, in seconds. */
const LEEWAY_S = 60;
/** Maximum number of cached tokens with a valid signature. */
const KNOWN_TOKENS = 1000;

/** Name and UID of an object, as in the claims of a token. */
export interface TokenReference {
  readonly name: string;
  readonly uid?: string | undefined;
}

/** Service account and bound objects of a token. */
export interface TokenSubject {
  readonly namespace: string;
  readonly serviceaccount: TokenReference;
  readonly pod?: TokenReference | undefined;
  readonly secret?: TokenReference | undefined;
  readonly node?: TokenReference | undefined;
  /** Time after which the use of an extended token is stale, in seconds since 1970. */
  readonly warnafter?: number | undefined;
}

/** Claims of a token. */
interface Claims {
  readonly aud: readonly string[];
  readonly exp: number;
  readonly iat: number;
  readonly nbf: number;
  readonly iss: string;
  readonly jti: string;
  readonly sub: string;
  readonly "kubernetes.io": TokenSubject;
}

/** User and audiences of a valid token. */
export interface TokenUser {
  readonly user: User;
  readonly audiences: readonly string[];
}

/** Error of an invalid token, with kube-apiserver's message. */
export class TokenError extends Error {}

/** Signing key with the fields of JWTs that depend on it. */
interface Key {
  readonly publicKey: KeyObject;
  readonly algorithm: "ES256" | "RS256";
  readonly id: string;
}

/**
 * Tokens of service accounts: JSON Web Tokens signed with one key, by default
 * that of the server's authority. A token is valid until it expires, provided
 * that its service account and the object it is bound to exist.
 */
export class ServiceAccountTokens {
  readonly #deps: ServiceAccountTokensDeps;
  /** Claims of the tokens with a valid signature. */
  readonly #known: Map<string, Claims> = new Map();
  #signing: Key & { readonly privateKey: KeyObject } | undefined;
  #verifying: readonly Key[] | undefined;

  constructor(deps: ServiceAccountTokensDeps) {
    this.#deps = deps;
  }

  /** Issuer of new tokens. */
  get issuer(): string {
    return this.#issuers[0] ?? ISSUER;
  }

  /** Audiences of the server. */
  get audiences(): readonly string[] {
    const { audiences } = this.#deps.settings ?? {};
    return audiences?.length ? audiences : [this.issuer];
  }

  get #issuers(): readonly string[] {
    const { issuers } = this.#deps.settings ?? {};
    return issuers?.length ? issuers : [ISSUER];
  }

  /** Issues a token. */
  issue(
    subject: TokenSubject,
    { audiences, seconds }: {
      readonly audiences: readonly string[];
      readonly seconds: number;
    },
  ): string {
    const { clock, random } = this.#deps;
    const now = Math.floor(clock.wallTime() / 1000);
    const claims: Claims = {
      aud: audiences,
      exp: now + seconds,
      iat: now,
      iss: this.issuer,
      jti: random.uid(),
      "kubernetes.io": subject,
      nbf: now,
      sub: accountUser(subject.namespace, subject.serviceaccount.name),
    };
    const { privateKey, algorithm, id } = this.#signingKey();
    const content = `${encoded({ alg: algorithm, kid: id })}.${
      encoded(claims)
    }`;
    const signature = sign("sha256", Buffer.from(content), {
      key: privateKey,
      dsaEncoding: "ieee-p1363",
    });
    return `${content}.${signature.toString("base64url")}`;
  }

  /**
   * Validates a token; returns undefined if it is from another issuer.
   *
   * @param token The token.
   * @param audiences Accepted audiences.
   * @throws {TokenError} If the token is not valid.
   */
  authenticate(
    token: string,
    audiences: readonly string[],
  ): TokenUser | undefined {
    const claims = this.#verified(token);
    if (claims === undefined) return undefined;
    const common = claims.aud.filter((one) => audiences.includes(one));
    if (common.length === 0) {
      throw new TokenError(
        `token audiences ${
          goList(claims.aud)
        } is invalid for the target audiences ${goList(audiences)}`,
      );
    }
    const now = Math.floor(this.#deps.clock.wallTime() / 1000);
    if (now - LEEWAY_S > claims.exp) {
      throw new TokenError("service account token has expired");
    }
    if (now + LEEWAY_S < claims.nbf) {
      throw new TokenError("service account token is not valid yet");
    }
    const subject = claims["kubernetes.io"];
    this.#checkObjects(subject);
    return { user: userOf(claims), audiences: common };
  }

  /** Claims of a token of this issuer; the signature is checked once. */
  #verified(token: string): Claims | undefined {
    const known = this.#known.get(token);
    if (known !== undefined) return known;
    const [head = "", body = "", signature = "", ...rest] = token.split(".");
    const claims = decoded(body);
    if (
      !this.#issuers.includes(String(claims?.iss)) || signature === "" ||
      rest.length > 0
    ) {
      return undefined;
    }
    const written = decoded(head)?.alg;
    const bytes = Buffer.from(signature, "base64url");
    // Node skips characters that are none of the encoding.
    const isExact = bytes.toString("base64url") === signature;
    const isSigned = isExact &&
      this.#verifyingKeys().some(({ publicKey, algorithm }) =>
        written === algorithm &&
        verify("sha256", Buffer.from(`${head}.${body}`), {
          key: publicKey,
          dsaEncoding: "ieee-p1363",
        }, bytes)
      );
    if (!isSigned) {
      throw new TokenError("failed to verify signature");
    }
    if (this.#known.size >= KNOWN_TOKENS) {
      for (const oldest of this.#known.keys()) {
        this.#known.delete(oldest);
        break;
      }
    }
    this.#known.set(token, claims as JsonObject & Claims);
    return claims as JsonObject & Claims;
  }

  #checkObjects(subject: TokenSubject): void {
    const { namespace, serviceaccount, pod, secret, node } = subject;
    const account = this.#find("serviceaccounts", namespace, serviceaccount);
    if (account === undefined) {
      throw new TokenError(
        `serviceaccounts "${serviceaccount.name}" not found`,
      );
    }
    if (account.uid !== serviceaccount.uid) {
      throw new TokenError(
        `service account UID (${account.uid}) does not match claim (${serviceaccount.uid})`,
      );
    }
    const bound = [
      ["secrets", "secret", "secret", secret, namespace],
      ["pods", "pod", "pod", pod, namespace],
      ["nodes", "node", "node", pod ? undefined : node, ""],
    ] as const;
    for (const [plural, word, claim, reference, place] of bound) {
      if (reference === undefined) continue;
      const found = this.#find(plural, place, reference);
      if (found === undefined) {
        throw new TokenError("service account token has been invalidated");
      }
      if (found.uid !== reference.uid) {
        const name = word === "secret" ? "Secret" : word;
        throw new TokenError(
          `${name} UID (${found.uid}) does not match service account ${claim} ref claim (${reference.uid})`,
        );
      }
    }
  }

  #find(plural: string, namespace: string, { name }: TokenReference) {
    return this.#deps.store.collection({ group: "", plural })
      .get(storageKey({ namespace, name }));
  }

  #signingKey(): Key & { readonly privateKey: KeyObject } {
    if (this.#signing === undefined) {
      const pem = this.#deps.settings?.signingKey ?? this.#deps.key();
      this.#signing = { ...keyOf(pem), privateKey: createPrivateKey(pem) };
    }
    return this.#signing;
  }

  #verifyingKeys(): readonly Key[] {
    return this.#verifying ??= this.#deps.settings?.keys?.map(keyOf) ??
      [this.#signingKey()];
  }

  /** Public keys as JSON Web Keys. */
  publicKeys(): readonly (Record<string, unknown> & {
    readonly alg: string;
  })[] {
    return this.#verifyingKeys().map(({ publicKey, algorithm, id }) => ({
      use: "sig",
      ...publicKey.export({ format: "jwk" }),
      kid: id,
      alg: algorithm,
    }));
  }
}

/** Settings of the tokens of service accounts. */
export interface ServiceAccountSettings {
  readonly issuers?: readonly string[] | undefined;
  readonly audiences?: readonly string[] | undefined;
  readonly signingKey?: string | undefined;
  readonly keys?: readonly string[] | undefined;
}

/** Dependencies of {@linkcode ServiceAccountTokens}. */
export interface ServiceAccountTokensDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  /** Private key in PEM that signs by default: elliptic (P-256) or RSA. */
  readonly key: () => string;
  readonly settings?: ServiceAccountSettings | undefined;
}

/** Key of a PEM: a private key, a public key or a certificate. */
function keyOf(pem: string): Key {
  const publicKey = createPublicKey(pem);
  const der = publicKey.export({ type: "spki", format: "der" });
  return {
    publicKey,
    algorithm: publicKey.asymmetricKeyType === "rsa" ? "RS256" : "ES256",
    id: createHash("sha256").update(der).digest("base64url"),
  };
}

function userOf(claims: Claims): User {
  const { namespace, serviceaccount, pod, node } = claims["kubernetes.io"];
  const values = {
    "credential-id": `JTI=${claims.jti}`,
    "node-name": node?.name,
    "node-uid": node?.uid,
    "pod-name": pod?.name,
    "pod-uid": pod?.uid,
  };
  return {
    name: accountUser(namespace, serviceaccount.name),
    uid: serviceaccount.uid,
    groups: [...accountGroups(namespace), "system:authenticated"],
    extra: Object.fromEntries(
      Object.entries(values).flatMap(([name, value]) =>
        value ? [[`authentication.kubernetes.io/${name}`, [value]]] : []
      ),
    ),
  };
}

function encoded(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

function decoded(text: string): JsonObject | undefined {
  try {
    const value = JSON.parse(Buffer.from(text, "base64url").toString());
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
