import { createHmac, randomBytes } from "node:crypto";
import { builtIn, type ResolvedKind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import type { Client } from "../client/client.ts";
import { type Clock, deadline } from "../clock.ts";
import type { Logger } from "../logger.ts";

/** User of a token, as the API server knows it. */
interface User {
  readonly username?: string | undefined;
  readonly uid?: string | undefined;
  readonly groups?: readonly string[] | undefined;
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined;
}

const TOKEN_REVIEW: ResolvedKind<
  KubernetesObject & {
    readonly spec: { readonly token: string };
    readonly status?: {
      readonly authenticated?: boolean | undefined;
      readonly user?: User | undefined;
    };
  }
> = builtIn("TokenReview", "Cluster", "authentication.k8s.io");

const ACCESS_REVIEW: ResolvedKind<
  KubernetesObject & {
    readonly spec: object;
    readonly status?: { readonly allowed?: boolean | undefined };
  }
> = builtIn("SubjectAccessReview", "Cluster", "authorization.k8s.io");

/**
 * Times for which answers of the API server are used again, in milliseconds: those
 * of the metrics filters of controller-runtime.
 */
const TOKEN_TTL_MS = 60_000;
const ALLOWED_TTL_MS = 300_000;
const DENIED_TTL_MS = 30_000;
/** Time limit for a review, in milliseconds: that of the same filters. */
const REVIEW_TIMEOUT_MS = 10_000;
/** Maximum number of answers that are kept; the oldest is forgotten. */
const MAX_ANSWERS = 1_000;
/** Maximum number of requests that wait for a review; further ones get 429. */
const MAX_WAITING = 20;

/** Why a request is refused. */
export interface AccessRefusal {
  readonly status: 401 | 403 | 429 | 503;
  readonly message: string;
}

/** What {@linkcode RequestAccess} depends on. */
export interface RequestAccessDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Logger;
  /** Signal that aborts when the server stops. */
  readonly signal: AbortSignal;
}

/**
 * Access to the paths of a server by bearer token: a TokenReview says whose token it
 * is, and a SubjectAccessReview whether that user may read the path. Answers are used
 * again for a limited time. Tokens are neither kept nor logged.
 */
export class RequestAccess {
  readonly #deps: RequestAccessDeps;
  readonly #users: Answers<User | undefined>;
  readonly #rights: Answers<boolean>;
  /** Key of the digests that identify answers. */
  readonly #secret = randomBytes(32);
  #waiting = 0;

  constructor(deps: RequestAccessDeps) {
    this.#deps = deps;
    this.#users = new Answers(deps.clock, () => TOKEN_TTL_MS);
    this.#rights = new Answers(
      deps.clock,
      (isAllowed) => isAllowed ? ALLOWED_TTL_MS : DENIED_TTL_MS,
    );
  }

  /**
   * Why a request is refused; undefined if it is let in.
   *
   * @param authorization Header of the request.
   */
  async refusal(
    { method, path, authorization = "" }: {
      readonly method: string;
      readonly path: string;
      readonly authorization?: string | undefined;
    },
  ): Promise<AccessRefusal | undefined> {
    const [, token] = /^bearer +([^\s]+) *$/i.exec(authorization) ?? [];
    if (token === undefined) return UNKNOWN;
    if (this.#waiting >= MAX_WAITING) return BUSY;
    this.#waiting++;
    try {
      const user = await this.#users.get(
        this.#digest(token),
        () => this.#userOf(token),
      );
      if (user === undefined) return UNKNOWN;
      const verb = method.toLowerCase();
      const isAllowed = await this.#rights.get(
        this.#digest(JSON.stringify([verb, path, user])),
        () => this.#mayRead(user, { verb, path }),
      );
      return isAllowed ? undefined : {
        status: 403,
        message:
          `Cannot serve this path: user "${user.username}" may not ${verb} it`,
      };
    } catch (error) {
      // The API server says of a token only that it cannot be reviewed.
      this.#deps.log.warn("Cannot review the access to a path of the probes", {
        path,
        error,
      });
      return UNREVIEWED;
    } finally {
      this.#waiting--;
    }
  }

  #digest(text: string): string {
    return createHmac("sha256", this.#secret).update(text).digest("base64");
  }

  async #userOf(token: string): Promise<User | undefined> {
    const { status } = await this.#review((signal) =>
      this.#deps.client.create(
        TOKEN_REVIEW,
        { metadata: {}, spec: { token } },
        { signal },
      )
    );
    return status?.authenticated ? status.user ?? {} : undefined;
  }

  async #mayRead(
    { username: user, uid, groups, extra }: User,
    nonResourceAttributes: { readonly verb: string; readonly path: string },
  ): Promise<boolean> {
    const spec = { user, uid, groups, extra, nonResourceAttributes };
    const { status } = await this.#review((signal) =>
      this.#deps.client.create(ACCESS_REVIEW, { metadata: {}, spec }, {
        signal,
      })
    );
    return status?.allowed === true;
  }

  #review<R>(send: (signal: AbortSignal) => Promise<R>): Promise<R> {
    const { clock, signal } = this.#deps;
    return deadline(send, REVIEW_TIMEOUT_MS, { clock, signal });
  }
}

const UNKNOWN: AccessRefusal = {
  status: 401,
  message:
    "Cannot serve this request: it must have a bearer token that the API server accepts",
};
const BUSY: AccessRefusal = {
  status: 429,
  message: "Cannot serve this request now: too many wait for a review",
};
const UNREVIEWED: AccessRefusal = {
  status: 503,
  message: "Cannot serve this request now: its access cannot be reviewed",
};

/** Answers that are used again until they expire; each is asked for once. */
class Answers<V> {
  readonly #clock: Clock;
  readonly #lifetime: (value: V) => number;
  readonly #answers: Map<string, { value: Promise<V>; expires: number }> =
    new Map();

  constructor(clock: Clock, lifetime: (value: V) => number) {
    this.#clock = clock;
    this.#lifetime = lifetime;
  }

  async get(key: string, ask: () => Promise<V>): Promise<V> {
    const known = this.#answers.get(key);
    if (known !== undefined && this.#clock.now() < known.expires) {
      return await known.value;
    }
    const answer = { value: ask(), expires: Infinity };
    this.#answers.delete(key);
    this.#answers.set(key, answer);
    if (this.#answers.size > MAX_ANSWERS) {
      this.#answers.delete(this.#answers.keys().next().value as string);
    }
    try {
      const value = await answer.value;
      answer.expires = this.#clock.now() + this.#lifetime(value);
      return value;
    } catch (error) {
      if (this.#answers.get(key) === answer) this.#answers.delete(key);
      throw error;
    }
  }
}
