import {
  checkOptions,
  type OptionRules,
  typeText,
} from "../core/api/options.ts";

/** Check of an HMAC of the body, which the sender puts into a header. */
type HmacCheck = Extract<WebhookCheck, { readonly hmac: unknown }>["hmac"];

/** Check of a bearer token in the Authorization header. */
type BearerCheck = Extract<
  WebhookCheck,
  { readonly bearer: unknown }
>["bearer"];

const HMAC_RULES: OptionRules<HmacCheck> = {
  secret: "string",
  header: "name?",
  prefix: "string?",
  algorithm: ["sha256", "sha384", "sha512", undefined],
};
const BEARER_RULES: OptionRules<BearerCheck> = { token: "string" };

/** Check that authenticates the requests of a webhook. */
export type WebhookCheck =
  | {
    /** Check of an HMAC of the body, which the sender puts into a header. */
    readonly hmac: {
      /** Shared secret. */
      readonly secret: string;
      /**
       * Header with the HMAC in hexadecimal digits; the default is GitHub's.
       *
       * @default {"x-hub-signature-256"}
       */
      readonly header?: string | undefined;
      /**
       * Text before the digits.
       *
       * @default {"sha256="}
       */
      readonly prefix?: string | undefined;
      /**
       * Hash function.
       *
       * @default {"sha256"}
       */
      readonly algorithm?: "sha256" | "sha384" | "sha512" | undefined;
    };
  }
  | {
    /** Check of a bearer token in the Authorization header. */
    readonly bearer: { readonly token: string };
  }
  | "none";

/** Part of a request that is checked. */
export interface CheckedRequest {
  /** Headers by name in lower case. */
  readonly headers: Readonly<
    Record<string, string | readonly string[] | undefined>
  >;
  /** Body as it was received. */
  readonly body: Uint8Array;
}

/**
 * Validates the check of a webhook.
 *
 * @throws {TypeError} If it is no check, or the secret is empty.
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
    `Cannot read the options of ${subject}: the secret must not be empty`,
  );
}

/**
 * Whether a request has the right signature or token. The comparison takes
 * constant time.
 */
export async function isAuthentic(
  request: CheckedRequest,
  check: WebhookCheck,
): Promise<boolean> {
  if (check === "none") return true;
  const { createHmac, timingSafeEqual } = await import("node:crypto");
  // Compares digests, which have equal lengths.
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
