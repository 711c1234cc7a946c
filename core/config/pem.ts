import { Buffer } from "node:buffer";
import { createPrivateKey, X509Certificate } from "node:crypto";

const BASE64_REGEXP = /^[A-Za-z0-9+/\s]+={0,2}\s*$/;

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

/**
 * Checks that a text contains the private key of a certificate, in PEM without a
 * passphrase.
 */
export function checkKey(
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
    key = createPrivateKey(pem);
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
