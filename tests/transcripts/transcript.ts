/** Recorded scenario: requests to a real API server with its answers. */
export interface Transcript {
  readonly name: string;
  readonly topic: string;
  readonly about: string;
  /** Required features of the server: `auth`, `controllers`, `expiry`. */
  readonly needs?: readonly string[];
  readonly steps: readonly Step[];
}

/** When a wait is over. */
export interface Condition {
  readonly status?: number;
  readonly path?: string;
  readonly equals?: unknown;
  readonly length?: number;
  readonly exists?: boolean;
  readonly events?: number;
  readonly closed?: boolean;
  readonly timeoutMs?: number;
}

/** Step: a request, a watch (`watch`) or a poll (`poll`). */
export interface Step {
  readonly id: string;
  readonly method?: string;
  readonly path?: string;
  readonly watch?: string;
  readonly poll?: string;
  readonly headers?: Readonly<Record<string, string | null>>;
  readonly body?: unknown;
  readonly rawBody?: string;
  readonly auth?: "none" | "bad";
  readonly until?: Condition;
  readonly first?: number;
  readonly during?: readonly Step[];
  readonly settleMs?: number;
  readonly timeoutMs?: number;
  readonly bookmarks?: boolean;
  /**
   * Whether it prepares later steps: if it fails, nothing else can be compared.
   */
  readonly setup?: boolean;
  /** Runs when all scenarios are done. */
  readonly cleanup?: boolean;
  readonly compare?: "full" | "status" | "none";
  readonly pick?: readonly string[];
  readonly ignore?: readonly string[];
  readonly soft?: readonly string[];
  readonly ignoreHeaders?: readonly string[];
  readonly response?: Projection;
  /** What servers answer instead from a minor version of Kubernetes on. */
  readonly newer?: { readonly since: string; readonly response: Projection };
}

/** Compared parts of an answer. */
export interface Projection {
  readonly status?: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly closed?: boolean | undefined;
  readonly body?: unknown;
  readonly events?: unknown;
  readonly picked?: Readonly<Record<string, unknown>> | undefined;
}

/** Outcome of a step. */
export interface Outcome {
  readonly status?: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: unknown;
  readonly events?: readonly unknown[] | undefined;
  readonly closed?: boolean | undefined;
  /** Reason why there is no answer, or not the expected one. */
  readonly error?: string | undefined;
}
