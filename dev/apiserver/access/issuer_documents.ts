import {
  jsonResponse,
  type ServerRequest,
  type ServerResponse,
} from "../http/exchange.ts";
import type { ServiceAccountTokens } from "./service_account_tokens.ts";

const KEYS_PATH = "/openid/v1/jwks";

/**
 * Response with the OpenID configuration of the issuer of tokens, or its keys;
 * undefined for other paths.
 */
export function issuerDocument(
  tokens: ServiceAccountTokens,
  { headers }: ServerRequest,
  path: string,
): ServerResponse | undefined {
  const cached = { "cache-control": "public, max-age=3600" };
  const keys = tokens.publicKeys();
  if (path === KEYS_PATH) {
    return jsonResponse(200, { keys }, {
      ...cached,
      "content-type": "application/jwk-set+json",
    });
  }
  if (path !== "/.well-known/openid-configuration") return undefined;
  return jsonResponse(200, {
    issuer: tokens.issuer,
    jwks_uri: `https://${headers.host ?? "localhost"}${KEYS_PATH}`,
    response_types_supported: ["id_token"],
    subject_types_supported: ["public"],
    id_token_signing_alg_values_supported: [
      ...new Set(keys.map(({ alg }) => alg)),
    ],
  }, cached);
}
