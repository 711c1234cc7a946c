import { Buffer } from "node:buffer";
import { createPrivateKey, X509Certificate } from "node:crypto";

const BASE64_REGEXP = /^[A-Za-z0-9+/\s]+={0,2}\s*$/;

const KEY_BLOCK = /-----BEGIN ([A-Z ]*PRIVATE KEY)-----[^-]*-----END \1-----/;

/**
 * Decodes a `…-data` field of a kubeconfig.
 *
 * @param field Location of the field, for errors, which never quote the value.
 * @throws {TypeError} If it is not base64.
 */
export function decodeBase64(value: string, field: string): string {
  if (!BASE64_REGEXP.test(value)) {
    throw new TypeError(
      `Cannot use ${field}: it must be base64: received a text of ${value.length} characters`,
    );
  }
  return Buffer.from(value, "base64").toString();
}

/**
 * Checks that a text contains certificates in PEM.
 *
 * @throws {TypeError} If it contains no certificate, or an invalid one.
 */
export function checkCertificates(pem: string, field: string): void {
  const blocks = pem.match(
    /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g,
  );
  for (const block of blocks ?? [""]) {
    try {
      new X509Certificate(block);
    } catch {
      throw new TypeError(
        `Cannot use ${field}: it must contain certificates in PEM: received a text of ${pem.length} characters`,
      );
    }
  }
}

/** Where a client certificate and its key were given, for errors. */
export interface PairPlaces {
  readonly certificate: string;
  readonly key: string;
  /** Names of the fields that a missing one should be in. */
  readonly missing: { readonly certificate: string; readonly key: string };
}

/**
 * Checks that a client certificate and a key are given both or not at all, in PEM,
 * and fit each other: Deno ends the process for a pair that does not.
 *
 * @throws {TypeError} If they cannot be used together.
 */
export function checkPair(
  { certificate, key }: {
    readonly certificate?: string | undefined;
    readonly key?: string | undefined;
  },
  places: PairPlaces,
): void {
  if (certificate !== undefined && key !== undefined) {
    checkCertificates(certificate, places.certificate);
    checkKey(key, places.key, { certificate });
  } else if (certificate !== undefined || key !== undefined) {
    const [given, missing] = key === undefined
      ? [places.certificate, places.missing.key]
      : [places.key, places.missing.certificate];
    throw new TypeError(`Cannot use ${given}: ${missing} is missing`);
  }
}

/**
 * Checks that a text contains the private key of a certificate, in PEM without a
 * passphrase.
 */
function checkKey(
  pem: string,
  field: string,
  { certificate }: { readonly certificate: string },
): void {
  const fail = (expected: string, received: string) => {
    throw new TypeError(
      `Cannot use ${field}: it must ${expected}: received ${received}`,
    );
  };
  if (/ENCRYPTED/.test(pem)) {
    fail("be a private key without a passphrase", "an encrypted one");
  }
  let key: ReturnType<typeof createPrivateKey>;
  try {
    // Deno's parser refuses what may stand around the block.
    key = createPrivateKey(KEY_BLOCK.exec(pem)?.[0] ?? pem);
  } catch {
    return fail(
      "contain a private key in PEM",
      `a text of ${pem.length} characters`,
    );
  }
  if (!new X509Certificate(certificate).checkPrivateKey(key)) {
    fail("be the key of the client certificate", "another key");
  }
}
