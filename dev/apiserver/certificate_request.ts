import { Buffer } from "node:buffer";
import { createPublicKey, verify } from "node:crypto";
import {
  childrenOf,
  type Der,
  type DerChild,
  objectIdentifier,
  valuesIn,
} from "@coracle/operator/internal";

/**
 * Certificate request (PKCS #10). What admits a request and what signs it read it
 * here, so that both see the same subject.
 */
export interface CertificateRequest {
  /** Subject as it goes into the certificate. */
  readonly subject: Der;
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly publicKey: Der;
  /** Extension with the alternative names; undefined without one. */
  readonly alternativeNames: Der | undefined;
  /** Number of alternative names of each kind. */
  readonly names: Readonly<
    Record<"email" | "dns" | "uri" | "ip" | "other", number>
  >;
}

/** Error of a certificate request that cannot be read. */
export class RequestError extends Error {
  override readonly name = "RequestError";
}

function fail(why: string): never {
  throw new RequestError(why);
}

/**
 * Reads a certificate request.
 *
 * @param encoded Request in PEM, in base64.
 * @throws {RequestError} If it is no request with a valid signature.
 */
export function readCertificateRequest(encoded: string): CertificateRequest {
  return readRequestContent(
    pemContent(Buffer.from(encoded, "base64").toString("latin1")),
  );
}

/**
 * Reads the content of a certificate request.
 *
 * @param der Request in DER.
 * @throws {RequestError} If it is no request with a valid signature.
 */
export function readRequestContent(der: Buffer): CertificateRequest {
  const [info, algorithm, signature, ...rest] = childrenOf(der);
  if (!info || !algorithm || !signature || rest.length > 0) {
    return fail("x509: malformed certificate request");
  }
  const [version, subject, publicKey, attributes, ...more] = childrenOf(
    info.whole,
  );
  if (
    version?.tag !== 0x02 || subject?.tag !== 0x30 ||
    publicKey?.tag !== 0x30 || attributes?.tag !== 0xa0 || more.length > 0
  ) return fail("x509: malformed certificate request");
  checkSignature(info, algorithm, signature, publicKey);
  const alternativeNames = requestedNames(attributes);
  return {
    subject: subject.whole,
    ...subjectNames(subject),
    publicKey: publicKey.whole,
    alternativeNames,
    names: countNames(alternativeNames),
  };
}

/** Content of the first block of a PEM text, which must be a request. */
function pemContent(text: string): Buffer {
  const [, label = "", body = ""] =
    /-----BEGIN ([^\r\n-]+)-----[ \t]*\r?\n([^-]*?)\r?\n?-----END \1-----/
      .exec(text) ?? [];
  // What comes before the block may only be text, not another block.
  if (
    label !== "CERTIFICATE REQUEST" ||
    text.indexOf("-----BEGIN") !== text.indexOf(`-----BEGIN ${label}-----`)
  ) return fail("PEM block type must be CERTIFICATE REQUEST");
  if (body.includes(":")) return fail("no PEM block headers are permitted");
  const base64 = body.replaceAll(/\s/g, "");
  const content = Buffer.from(base64, "base64");
  return content.toString("base64") === base64
    ? content
    : fail("PEM block type must be CERTIFICATE REQUEST");
}

/** Digests of signature algorithms by their identifiers; null for none. */
const DIGESTS: Readonly<Record<string, string | null>> = {
  "1.2.840.10045.4.3.2": "sha256",
  "1.2.840.10045.4.3.3": "sha384",
  "1.2.840.10045.4.3.4": "sha512",
  "1.2.840.113549.1.1.11": "sha256",
  "1.2.840.113549.1.1.12": "sha384",
  "1.2.840.113549.1.1.13": "sha512",
  "1.3.101.112": null,
};

function checkSignature(
  info: DerChild,
  algorithm: DerChild,
  signature: DerChild,
  publicKey: DerChild,
): void {
  const [id] = childrenOf(algorithm.whole);
  const known = Object.entries(DIGESTS).find(([name]) =>
    id && Buffer.from(objectIdentifier(name)).equals(id.whole)
  );
  if (known === undefined) {
    fail("x509: cannot verify signature: algorithm unimplemented");
  }
  let valid = false;
  try {
    const key = createPublicKey({
      key: Buffer.from(publicKey.whole),
      format: "der",
      type: "spki",
    });
    // The first byte of a bit string is the number of unused bits.
    valid = verify(known[1], info.whole, key, signature.content.subarray(1));
  } catch {
    // A key that cannot be read verifies nothing.
  }
  if (!valid) fail("x509: signature verification failure");
}

const COMMON_NAME = Buffer.from(objectIdentifier("2.5.4.3"));
const ORGANIZATION = Buffer.from(objectIdentifier("2.5.4.10"));

/** Names of a subject that Kubernetes reads. */
function subjectNames(
  subject: DerChild,
): { readonly commonName: string; readonly organizations: readonly string[] } {
  let commonName = "";
  const organizations: string[] = [];
  for (const set of valuesIn(subject.content) ?? []) {
    if (set.tag !== 0x31) fail("x509: malformed subject");
    const attributes = valuesIn(set.content) ?? [];
    if (attributes.length === 0) fail("x509: malformed subject");
    for (const attribute of attributes) {
      const [type, value, ...rest] = childrenOf(attribute.whole);
      if (type?.tag !== 0x06 || !value || rest.length > 0) {
        return fail("x509: malformed subject");
      }
      const text = textOf(value);
      if (COMMON_NAME.equals(type.whole)) commonName = text;
      if (ORGANIZATION.equals(type.whole)) organizations.push(text);
    }
  }
  return { commonName, organizations };
}

/** Text of a string value of a type that certificates use. */
function textOf({ tag, content }: DerChild): string {
  const bytes = Buffer.from(content);
  switch (tag) {
    case 0x0c: // UTF8String
      try {
        return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
          .decode(content);
      } catch {
        return fail("x509: invalid UTF8String in subject");
      }
    case 0x12: // NumericString
    case 0x13: // PrintableString
    case 0x16: // IA5String
      return content.every((byte) => byte < 128)
        ? bytes.toString("latin1")
        : fail("x509: invalid characters in subject");
    case 0x14: // T61String
      return bytes.toString("latin1");
    case 0x1e: // BMPString
      return content.length % 2 === 0
        ? bytes.swap16().toString("utf16le")
        : fail("x509: invalid BMPString in subject");
    default:
      return fail("x509: unsupported string type in subject");
  }
}

/** Attribute of a request with the extensions that it asks for. */
const EXTENSION_REQUEST = Buffer.from(
  objectIdentifier("1.2.840.113549.1.9.14"),
);
const ALTERNATIVE_NAME = Buffer.from(objectIdentifier("2.5.29.17"));

/** Extension with the alternative names that a request asks for. */
function requestedNames(attributes: DerChild): Der | undefined {
  const found: Der[] = [];
  for (const attribute of valuesIn(attributes.content) ?? []) {
    const [type, values] = childrenOf(attribute.whole);
    if (!type || !values || !EXTENSION_REQUEST.equals(type.whole)) continue;
    for (const extensions of valuesIn(values.content) ?? []) {
      for (const extension of childrenOf(extensions.whole)) {
        const [name] = childrenOf(extension.whole);
        if (name && ALTERNATIVE_NAME.equals(name.whole)) {
          found.push(extension.whole);
        }
      }
    }
  }
  return found.length > 1
    ? fail("x509: certificate request contains duplicate extensions")
    : found[0];
}

/** Kinds of alternative names by their tags. */
const KINDS: Readonly<Record<number, "email" | "dns" | "uri" | "ip">> = {
  1: "email",
  2: "dns",
  6: "uri",
  7: "ip",
};

function countNames(extension: Der | undefined): CertificateRequest["names"] {
  const counts = { email: 0, dns: 0, uri: 0, ip: 0, other: 0 };
  if (extension === undefined) return counts;
  const value = childrenOf(extension).at(-1);
  for (const { tag } of value ? childrenOf(value.content) : []) {
    counts[KINDS[tag & 0x1f] ?? "other"]++;
  }
  return counts;
}
