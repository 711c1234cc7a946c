import { Buffer } from "node:buffer";

/** Time limit of a request to a webhook. */
export interface WebhookCall {
  /**
   * Signal that aborts before the API server gives up. An answer after that is
   * not sent.
   */
  readonly signal: AbortSignal;
  /** Time until then, in milliseconds. */
  readonly timeout: number;
}

/**
 * Handler of the requests to one path of the webhook listener: it gets the body
 * as it was received, and returns the review to answer with, which is sent as
 * JSON. A {@linkcode WebhookRefusal} is sent as it is; any other error counts as
 * a failed call, for which the `failurePolicy` of the webhook decides.
 */
export type WebhookRoute = (
  body: Uint8Array,
  call: WebhookCall,
) => Promise<object>;

/** Routes of a webhook listener, by path. */
export type WebhookRoutes = ReadonlyMap<string, WebhookRoute>;

/** Refusal of a request to a webhook: HTTP status and text of the answer. */
export class WebhookRefusal extends Error {
  /** HTTP status code. */
  readonly status: number;

  /** Creates a refusal; its text must not quote the body. */
  constructor(status: number, message: string) {
    super(message);
    this.name = "WebhookRefusal";
    this.status = status;
  }
}

/**
 * Parses the body of a review.
 *
 * @throws {WebhookRefusal} If it is no JSON object.
 */
export function parseReview(
  body: Uint8Array,
): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    // Faster than a decoder for the sizes of reviews.
    value = JSON.parse(
      Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString(),
    );
  } catch {
    throw new WebhookRefusal(400, "Cannot read the review: it must be JSON");
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return value as Readonly<Record<string, unknown>>;
  }
  throw new WebhookRefusal(400, "Cannot read the review: it must be an object");
}

/** How an API server reaches a served webhook, as `clientConfig` of its registration. */
export interface WebhookClientConfig {
  /** URL of a webhook that no Service is in front of. */
  readonly url?: string | undefined;
  /** Service in front of the webhook. */
  readonly service?:
    | {
      readonly namespace: string;
      readonly name: string;
      readonly port: number;
      readonly path: string;
    }
    | undefined;
  /** Certificate authorities of the webhook, PEM in base64. */
  readonly caBundle?: string | undefined;
}

/**
 * Host of webhooks, in place of a listener on a port: a tool that runs operators
 * beside its own API server, such as `TestCluster`, calls the routes in process.
 */
export interface WebhookHost {
  /**
   * Serves routes until they are closed. Routes that are added to the map later
   * are served as well.
   */
  serve(routes: WebhookRoutes): {
    /** Returns how the API server reaches a path. */
    clientConfig(path: string): WebhookClientConfig;
    /** Ends serving. */
    close(): void;
  };
}

/** Host that names what is registered. */
export interface NamedWebhookHost extends WebhookHost {
  /** Name of the webhook configurations; that of the first kind by default. */
  readonly name?: string | undefined;
}
