import {
  checkOptions,
  type OptionRules,
  typeText,
} from "../core/api/options.ts";

/** Checks an HMAC of the body that the sender puts into a header. */
export interface HmacCheck {
  /** The shared secret. */
  readonly secret: string;
  /**
   * The header that holds the HMAC in hexadecimal digits.
   *
   * @default {"x-hub-signature-256", as GitHub sends it}
   */
  readonly header?: string | undefined;
  /**
   * What stands before the digits.
   *
   * @default {"sha256="}
   */
  readonly prefix?: string | undefined;
  /**
   * The hash function.
   *
   * @default {"sha256"}
   */
  readonly algorithm?: "sha256" | "sha384" | "sha512" | undefined;
}

/** Checks a bearer token in the Authorization header. */
export interface BearerCheck {
  /** The token. */
  readonly token: string;
}

const HMAC_RULES: OptionRules<HmacCheck> = {
  secret: "string",
  header: "name?",
  prefix: "string?",
  algorithm: ["sha256", "sha384", "sha512", undefined],
};
const BEARER_RULES: OptionRules<BearerCheck> = { token: "string" };

/** How a webhook knows that a request is from who it should be. */
export type WebhookCheck =
  | { readonly hmac: HmacCheck }
  | { readonly bearer: BearerCheck }
  | "none";

/** What of a request is checked. */
export interface CheckedRequest {
  /** The headers, names in lower case. */
  readonly headers: Readonly<
    Record<string, string | readonly string[] | undefined>
  >;
  /** The body, byte by byte as it came. */
  readonly body: Uint8Array;
}

/**
 * Refuses a check that would let nobody in, or anybody.
 *
 * @throws {TypeError} If it is none of the checks, or the secret is empty.
 */
export function checkVerification(check: WebhookCheck, subject: string): void {
  if (check === "none") return;
  const { hmac, bearer, ...others } = Object(check) as {
    readonly hmac?: HmacCheck;
    readonly bearer?: BearerCheck;
  };
  const [form] = [hmac, bearer].filter((one) => one !== undefined);
  if (!form || (hmac && bearer) || Object.keys(others).length > 0) {
    throw new TypeError(
      `Cannot read the options of ${subject}: "check" must be { hmac: { secret } }, { bearer: { token } } or "none": received ${
        typeText(check)
      }`,
    );
  }
  if (hmac) checkOptions(hmac, HMAC_RULES, `${subject}, check.hmac`);
  if (bearer) checkOptions(bearer, BEARER_RULES, `${subject}, check.bearer`);
  if ((hmac?.secret ?? bearer?.token) !== "") return;
  throw new TypeError(
    `Cannot read the options of ${subject}: the secret must not be empty: received nothing`,
  );
}

/**
 * Whether a request carries the right signature or token. The comparison takes
 * the same time whatever is wrong.
 */
export async function isAuthentic(
  request: CheckedRequest,
  check: WebhookCheck,
): Promise<boolean> {
  if (check === "none") return true;
  const { createHmac, timingSafeEqual } = await import("node:crypto");
  // Digests of both, which are of one length whatever the texts are.
  const sameText = (given: string, expected: string): boolean => {
    const digest = (text: string) =>
      createHmac("sha256", "compare").update(text).digest();
    return timingSafeEqual(digest(given), digest(expected));
  };
  if ("bearer" in check) {
    const given = single(request.headers["authorization"]);
    const match = /^bearer +(\S+) *$/i.exec(given);
    return sameText(match?.[1] ?? "", check.bearer.token);
  }
  const {
    secret,
    header = "x-hub-signature-256",
    prefix = "sha256=",
    algorithm = "sha256",
  } = check.hmac;
  const expected = createHmac(algorithm, secret).update(request.body)
    .digest("hex");
  return sameText(
    single(request.headers[header.toLowerCase()]).toLowerCase(),
    `${prefix}${expected}`.toLowerCase(),
  );
}

function single(value: string | readonly string[] | undefined): string {
  return typeof value === "string" ? value : value?.[0] ?? "";
}
