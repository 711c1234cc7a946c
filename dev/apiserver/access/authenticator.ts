import type { PeerCertificate, ServerRequest } from "../http/exchange.ts";
import {
  ANONYMOUS,
  bearerToken,
  completed,
  type User,
} from "../request/user.ts";
import { StatusError } from "../status.ts";
import type {
  ServiceAccountTokens,
  TokenUser,
} from "./service_account_tokens.ts";

/**
 * Authenticator of requests: by client certificate, by the tokens of the options
 * or by the token of a service account.
 */
export class Authenticator {
  readonly #userOf: (token: string) => User | undefined;
  readonly #accounts: ServiceAccountTokens;

  /**
   * Creates an authenticator.
   *
   * @param userOf Function that returns the user of a token of the options.
   * @param accounts Tokens of service accounts.
   */
  constructor(
    userOf: (token: string) => User | undefined,
    accounts: ServiceAccountTokens,
  ) {
    this.#userOf = userOf;
    this.#accounts = accounts;
  }

  /**
   * User of a request; anonymous without credentials.
   *
   * @throws {StatusError} 401 if the credentials are not valid.
   */
  authenticate(
    { headers, certificate }: Pick<ServerRequest, "headers" | "certificate">,
  ): User {
    if (certificate?.isTrusted) return certificateUser(certificate);
    const token = bearerToken(headers.authorization ?? "");
    if (token === undefined && certificate === undefined) return ANONYMOUS;
    try {
      const found = token && this.review(token);
      if (found) return found.user;
    } catch {
      // Answered below, without the reason as kube-apiserver does.
    }
    throw new StatusError({
      code: 401,
      reason: "Unauthorized",
      message: "Unauthorized",
    });
  }

  /**
   * User of a token; undefined if the token is unknown.
   *
   * @param audiences Accepted audiences; by default the audience of the server.
   * @throws {TokenError} If the token is not valid.
   */
  review(
    token: string,
    audiences: readonly string[] = this.#accounts.audiences,
  ): TokenUser | undefined {
    const user = this.#userOf(token);
    if (user === undefined) {
      return this.#accounts.authenticate(token, audiences);
    }
    const common = this.#accounts.audiences.filter((one) =>
      audiences.includes(one)
    );
    return common.length === 0 ? undefined : { user, audiences: common };
  }
}

/** User of a client certificate: common name, and organizations as groups. */
function certificateUser(
  { commonName, organizations, fingerprint }: PeerCertificate,
): User {
  return completed({
    name: commonName,
    groups: organizations,
    ...fingerprint !== undefined && {
      extra: {
        "authentication.kubernetes.io/credential-id": [
          `X509SHA256=${fingerprint}`,
        ],
      },
    },
  });
}
