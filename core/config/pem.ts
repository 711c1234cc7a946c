import { Buffer } from "node:buffer";
import { createPrivateKey, X509Certificate } from "node:crypto";

const BASE64_REGEXP = /^[A-Za-z0-9+/\s]+={0,2}\s*$/;

/**
 * Decodes what a `…-data` field of a kubeconfig holds.
 *
 * @param field Names the field for errors, which hold nothing of the value.
 * @throws {TypeError} If it is not base64.
 */
export function decodeBase64(value: string, field: string): string {
  if (!BASE64_REGEXP.test(value)) {
    throw new TypeError(
      `Cannot use ${field}: it must be base64: received ${value.length} characters that are not`,
    );
  }
  return Buffer.from(value, "base64").toString();
}

/**
 * Checks that a text holds certificates in PEM.
 *
 * @param field Names where the text comes from, for errors.
 * @throws {TypeError} If it holds none, or one that cannot be read.
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
        `Cannot use ${field}: it must hold certificates in PEM: received ${pem.length} characters of something else`,
      );
    }
  }
}

/**
 * Checks that a text holds a private key in PEM that needs no pass phrase, and
 * that it is the key of a certificate.
 *
 * @param field Names where the text comes from, for errors.
 * @throws {TypeError} If it does not.
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
    fail("be a private key without a pass phrase", "an encrypted one");
  }
  let key: ReturnType<typeof createPrivateKey>;
  try {
    key = createPrivateKey(pem);
  } catch {
    return fail(
      "hold a private key in PEM",
      `${pem.length} characters of something else`,
    );
  }
  if (!new X509Certificate(certificate).checkPrivateKey(key)) {
    fail("be the key of the client certificate", "another key");
  }
}
