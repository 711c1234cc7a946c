import { Buffer } from "node:buffer";
import type {
  Credential,
  CredentialSource,
  Impersonation,
} from "../config/cluster_config.ts";
import { memoizedHeaders, type Middleware } from "./middleware.ts";
import type {
  HttpResponse,
  StreamConnection,
  StreamRequest,
} from "./transport/transport.ts";
import { StreamRefusedError } from "./transport/transport_error.ts";
import { basicAuthorization } from "./transport/transport_options.ts";

/** Headers of a credential and of an impersonation. */
export interface IdentityHeaders {
  /** Headers by name in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Headers with one line per value. */
  readonly repeatedHeaders?:
    | Readonly<Record<string, readonly string[]>>
    | undefined;
}

/** WebSocket request with a description for errors. */
export interface ApiStreamRequest extends StreamRequest {
  /** Text that follows "Cannot" in errors. */
  readonly action: string;
}

/** Function that opens a WebSocket. */
export type Connect = (request: ApiStreamRequest) => Promise<StreamConnection>;

/**
 * Middleware that adds the credentials to every request. After a 401 it
 * refreshes the credentials and sends the request once more, if they changed.
 */
export function authenticate(
  credentials: CredentialSource,
  impersonate?: Impersonation,
): Middleware {
  const identify = identifier(impersonate);
  return (next) => async (request) => {
    let credential = await credentials.current(request.signal);
    let response = await next(identify(request, credential));
    if (response.status === 401) {
      const renewed = await credentials.refresh(credential, request.signal)
        .catch(async (error) => {
          await response.cancel(); // Nobody reads it, and it has a connection.
          throw error;
        });
      if (renewed !== credential) {
        await response.cancel();
        credential = renewed;
        response = await next(identify(request, credential));
      }
    }
    return response.status < 400 ? response : redacted(response, credential);
  };
}

/** Adds credentials to WebSockets, as {@linkcode authenticate} to requests. */
export function authenticateStream(
  next: Connect,
  identity: {
    readonly credentials: CredentialSource;
    readonly impersonate: Impersonation | undefined;
  },
): Connect {
  const { credentials } = identity;
  const identify = identifier(identity.impersonate);
  return async (request) => {
    const open = async (credential: Credential) => {
      try {
        return await next(identify(request, credential));
      } catch (error) {
        if (!(error instanceof StreamRefusedError)) throw error;
        throw error.withBody(hidden(error.body, credential));
      }
    };
    const credential = await credentials.current(request.signal);
    try {
      return await open(credential);
    } catch (error) {
      if (!(error instanceof StreamRefusedError) || error.status !== 401) {
        throw error;
      }
      const renewed = await credentials.refresh(credential, request.signal);
      if (renewed === credential) throw error;
      return await open(renewed);
    }
  };
}

/** Maximum size of an error response that the caller gets, in bytes. */
const MAX_ERROR_BYTES = 1 << 20;

/** Copies an error response without the credential. */
function redacted(
  response: HttpResponse,
  credential: Credential,
): HttpResponse {
  async function* body(): AsyncGenerator<Uint8Array, void, undefined> {
    const decoder = new TextDecoder();
    let text = "";
    for await (const chunk of response.body) {
      text += decoder.decode(chunk, { stream: true });
      if (text.length >= MAX_ERROR_BYTES) break;
    }
    yield new TextEncoder().encode(hidden(text, credential));
  }
  return { ...response, body: body() };
}

/** Replaces a credential in the text of a server or proxy. */
function hidden(text: string, credential: Credential): string {
  const { token, username = "", password } = credential;
  const basic = password && basicAuthorization(username, password).slice(6);
  return [token, basic, password].reduce<string>(
    (rest, secret) => secret ? rest.replaceAll(secret, "…") : rest,
    text,
  );
}

/**
 * Returns a function that adds identity headers to requests; headers of the
 * caller take precedence. The headers of the last credential are cached.
 */
function identifier(
  impersonate: Impersonation | undefined,
): <R extends Pick<StreamRequest, "headers">>(
  request: R,
  credential: Credential,
) => R {
  let last: Credential | undefined;
  let identity: IdentityHeaders = { headers: {} };
  let withIdentity = memoizedHeaders((headers) => headers);
  return (request, credential) => {
    if (credential !== last) {
      const { headers } = identity = identityHeaders(credential, impersonate);
      withIdentity = memoizedHeaders((others) => ({ ...headers, ...others }));
      last = credential;
    }
    return { ...request, ...identity, headers: withIdentity(request.headers) };
  };
}

/** Builds the headers of a credential and of an impersonation. */
export function identityHeaders(
  credential: Credential,
  impersonate?: Impersonation,
): IdentityHeaders {
  const { token, username, password = "" } = credential;
  const headers: Record<string, string> = {};
  if (token) headers["authorization"] = `Bearer ${token}`;
  else if (username) {
    headers["authorization"] = basicAuthorization(username, password);
  }
  if (impersonate === undefined) return { headers };
  headers["impersonate-user"] = inBytes(impersonate.user);
  if (impersonate.uid) headers["impersonate-uid"] = inBytes(impersonate.uid);
  const repeatedHeaders: Record<string, readonly string[]> = {};
  if (impersonate.groups?.length) {
    repeatedHeaders["impersonate-group"] = impersonate.groups.map(inBytes);
  }
  for (const [name, values] of Object.entries(impersonate.extra ?? {})) {
    repeatedHeaders[`impersonate-extra-${headerNamePart(name)}`] = values.map(
      inBytes,
    );
  }
  return { headers, repeatedHeaders };
}

/**
 * Value of a header whose characters are the bytes of a text in UTF-8: runtimes send
 * each character as one byte, and API servers read UTF-8.
 */
function inBytes(text: string): string {
  return Buffer.from(text).toString("latin1");
}

/** Percent-encodes a key for use in a header name. */
function headerNamePart(name: string): string {
  const bytes = new TextEncoder().encode(name.toLowerCase());
  return Array.from(bytes, (byte) => {
    const character = String.fromCharCode(byte);
    return /[!#$&'*+\-.^_`|~0-9a-z]/.test(character)
      ? character
      : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }).join("");
}
