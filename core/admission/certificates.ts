import { Buffer } from "node:buffer";
import {
  createHash,
  generateKeyPairSync,
  randomBytes,
  sign,
} from "node:crypto";
import { isIP } from "node:net";
import { checkOption, checkOptions, type OptionRules } from "../api/options.ts";
import {
  bitString,
  boolean,
  childrenOf,
  type Der,
  explicit,
  implicit,
  objectIdentifier,
  octetString,
  sequence,
  setOf,
  time,
  unsignedInteger,
  utf8String,
} from "./der.ts";

/** Certificate and private key, both in PEM. */
export interface KeyPair {
  /** X.509 certificate, a `CERTIFICATE` block. */
  readonly certificate: string;
  /** Private key, a `PRIVATE KEY` block (PKCS #8). */
  readonly key: string;
}

/** Options of {@linkcode createAuthority} and {@linkcode issueCertificate}. */
export interface CertificateOptions {
  /** Common name of the subject; for a client, the user name. */
  readonly commonName: string;
  /** Organizations of the subject; for a client, the user's groups. */
  readonly organizations?: readonly string[] | undefined;
  /**
   * Issue time, in milliseconds since the Unix epoch. The certificate is valid
   * from an earlier time, since clocks differ.
   *
   * @default {Date.now()}
   */
  readonly now?: number | undefined;
  /**
   * Milliseconds before the issue time from which the certificate is valid.
   *
   * @default {3_600_000}
   */
  readonly backdate?: number | undefined;
  /**
   * Validity period, in milliseconds; by default a year.
   *
   * @default {31_536_000_000}
   */
  readonly validFor?: number | undefined;
}

/** Options of {@linkcode issueCertificate}. */
export interface IssueOptions extends CertificateOptions {
  /** Extended key usage: server or client authentication. */
  readonly usage: "server" | "client";
  /** DNS names and IP addresses of a server. */
  readonly hosts?: readonly string[] | undefined;
}

const AUTHORITY_RULES: OptionRules<CertificateOptions> = {
  commonName: "name",
  organizations: "strings?",
  now: "number?",
  backdate: "count?",
  validFor: "count?",
};
const ISSUE_RULES: OptionRules<IssueOptions> = {
  ...AUTHORITY_RULES,
  usage: ["server", "client"],
  hosts: "strings?",
};

const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;

const ECDSA_WITH_SHA256 = sequence(objectIdentifier("1.2.840.10045.4.3.2"));
const COMMON_NAME = "2.5.4.3";
const ORGANIZATION = "2.5.4.10";
const SUBJECT_KEY_IDENTIFIER = "2.5.29.14";
const KEY_USAGE = "2.5.29.15";
const SUBJECT_ALTERNATIVE_NAME = "2.5.29.17";
const BASIC_CONSTRAINTS = "2.5.29.19";
const AUTHORITY_KEY_IDENTIFIER = "2.5.29.35";
const EXTENDED_KEY_USAGE = "2.5.29.37";
const USAGES = {
  server: "1.3.6.1.5.5.7.3.1",
  client: "1.3.6.1.5.5.7.3.2",
} as const;

/**
 * Creates a certificate authority: a P-256 key and a self-signed certificate.
 *
 * @param options Name and validity period.
 * @throws {TypeError | RangeError} If an option is unknown, missing or invalid.
 */
export function createAuthority(options: CertificateOptions): KeyPair {
  checkOptions(options, AUTHORITY_RULES, "createAuthority()");
  const keys = newKeys();
  const subject = distinguishedName(options);
  const extensions = [
    extension(BASIC_CONSTRAINTS, sequence(boolean(true)), true),
    // Bits 5 and 6: the key signs certificates and revocation lists.
    extension(KEY_USAGE, bitString(Uint8Array.of(0b0000_0110), 1), true),
    extension(
      SUBJECT_KEY_IDENTIFIER,
      octetString(keyIdentifier(keys.publicKey)),
    ),
  ];
  return signedCertificate(keys, {
    subject,
    issuer: { name: subject, key: keys.privateKey },
    validity: validity(options),
    extensions,
  });
}

/**
 * Creates a key and a certificate for it, signed by an authority.
 *
 * @param authority Authority from {@linkcode createAuthority}.
 * @param options Subject, usage and validity period.
 * @throws {TypeError | RangeError} If an option is unknown, missing or invalid.
 */
export function issueCertificate(
  authority: KeyPair,
  options: IssueOptions,
): KeyPair {
  const subject = "issueCertificate()";
  checkOption(authority, "object", { name: "authority", subject });
  checkOptions(options, ISSUE_RULES, subject);
  const keys = newKeys();
  const { hosts = [], usage } = options;
  const issuer = subjectOf(authority.certificate);
  const extensions = [
    extension(BASIC_CONSTRAINTS, sequence(), true),
    // Bit 0: the key signs, which is all that TLS needs.
    extension(KEY_USAGE, bitString(Uint8Array.of(0b1000_0000), 7), true),
    extension(EXTENDED_KEY_USAGE, sequence(objectIdentifier(USAGES[usage]))),
    extension(
      SUBJECT_KEY_IDENTIFIER,
      octetString(keyIdentifier(keys.publicKey)),
    ),
    extension(
      AUTHORITY_KEY_IDENTIFIER,
      sequence(implicit(0, keyIdentifier(issuer.publicKey))),
    ),
  ];
  if (hosts.length > 0) {
    const names = sequence(...hosts.map(alternativeName));
    extensions.push(extension(SUBJECT_ALTERNATIVE_NAME, names));
  }
  return signedCertificate(keys, {
    subject: distinguishedName(options),
    issuer: { name: issuer.name, key: authority.key },
    validity: validity(options),
    extensions,
  });
}

/** Object identifiers of extended key usages in CertificateSigningRequests. */
const REQUESTED_USAGES: Readonly<Record<string, string>> = {
  "server auth": USAGES.server,
  "client auth": USAGES.client,
  "code signing": "1.3.6.1.5.5.7.3.3",
  "email protection": "1.3.6.1.5.5.7.3.4",
};

/** Key usages in CertificateSigningRequests, in the order of their bits. */
const REQUESTED_BITS = [
  "digital signature",
  "content commitment",
  "key encipherment",
  "data encipherment",
  "key agreement",
  "cert sign",
  "crl sign",
  "encipher only",
];

/**
 * Signs a certificate request.
 *
 * @param authority Authority from {@linkcode createAuthority}.
 * @param request Request; its subject, key and alternative names go into the
 * certificate.
 * @param options Usages as in a CertificateSigningRequest, and validity period.
 * @returns Certificate in PEM.
 */
export function signRequest(
  authority: KeyPair,
  { subject, publicKey, alternativeNames }: {
    /** Subject as it goes into the certificate. */
    readonly subject: Der;
    readonly publicKey: Der;
    /** Extension with the alternative names; undefined without one. */
    readonly alternativeNames: Der | undefined;
  },
  options: Omit<CertificateOptions, "commonName"> & {
    readonly usages: readonly string[];
  },
): string {
  const { usages } = options;
  let bits = 0;
  for (const [bit, usage] of REQUESTED_BITS.entries()) {
    const isWanted = usages.includes(usage) ||
      (bit === 0 && usages.includes("signing"));
    if (isWanted) bits |= 0b1000_0000 >> bit;
  }
  const extended = usages.flatMap((usage) => REQUESTED_USAGES[usage] ?? []);
  const issuer = subjectOf(authority.certificate);
  return signedCertificate({ privateKey: "", publicKey }, {
    subject,
    issuer: { name: issuer.name, key: authority.key },
    validity: validity({ commonName: "", ...options }),
    extensions: [
      ...(bits === 0 ? [] : [
        extension(KEY_USAGE, bitString(Uint8Array.of(bits)), true),
      ]),
      ...(extended.length === 0 ? [] : [
        extension(
          EXTENDED_KEY_USAGE,
          sequence(...extended.map(objectIdentifier)),
        ),
      ]),
      extension(BASIC_CONSTRAINTS, sequence(), true),
      extension(
        AUTHORITY_KEY_IDENTIFIER,
        sequence(implicit(0, keyIdentifier(issuer.publicKey))),
      ),
      ...(alternativeNames === undefined ? [] : [alternativeNames]),
    ],
  }).certificate;
}

/** Key pair: the private key in PEM, the public key in DER. */
interface Keys {
  readonly privateKey: string;
  readonly publicKey: Der;
}

function newKeys(): Keys {
  const pair = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return {
    privateKey: pair.privateKey.export({ type: "pkcs8", format: "pem" })
      .toString(),
    publicKey: pair.publicKey.export({ type: "spki", format: "der" }),
  };
}

/** Fields that differ between kinds of certificates. */
interface CertificateParts {
  readonly subject: Der;
  readonly issuer: { readonly name: Der; readonly key: string };
  readonly validity: Der;
  readonly extensions: readonly Der[];
}

function signedCertificate(keys: Keys, parts: CertificateParts): KeyPair {
  const { subject, issuer, validity, extensions } = parts;
  const content = sequence(
    explicit(0, unsignedInteger(Uint8Array.of(2))), // X.509 version 3
    unsignedInteger(Uint8Array.of(0x40, ...randomBytes(15))),
    ECDSA_WITH_SHA256,
    issuer.name,
    validity,
    subject,
    keys.publicKey,
    explicit(3, sequence(...extensions)),
  );
  const signature = sign("sha256", content, issuer.key);
  const certificate = sequence(
    content,
    ECDSA_WITH_SHA256,
    bitString(signature),
  );
  return { certificate: pem("CERTIFICATE", certificate), key: keys.privateKey };
}

function validity(options: CertificateOptions): Der {
  const { now = Date.now(), backdate = HOUR_MS, validFor = YEAR_MS } = options;
  return sequence(time(now - backdate), time(now + validFor));
}

function distinguishedName(options: CertificateOptions): Der {
  const attribute = (type: string, value: string) =>
    setOf(sequence(objectIdentifier(type), utf8String(value)));
  return sequence(
    ...(options.organizations ?? []).map((name) =>
      attribute(ORGANIZATION, name)
    ),
    attribute(COMMON_NAME, options.commonName),
  );
}

function extension(type: string, value: Der, critical = false): Der {
  return sequence(
    objectIdentifier(type),
    ...(critical ? [boolean(true)] : []),
    octetString(value),
  );
}

/** Key identifier: the SHA-1 digest of the public key's bits. */
function keyIdentifier(publicKey: Der): Uint8Array {
  const [, bits] = childrenOf(publicKey);
  // The first byte of a bit string is the number of unused bits.
  const content = bits?.content.subarray(1) ?? new Uint8Array();
  return createHash("sha1").update(content).digest();
}

/** Subject alternative name: a DNS name or an IP address. */
function alternativeName(host: string): Der {
  const version = isIP(host);
  if (version === 4) {
    return implicit(7, Uint8Array.from(host.split("."), Number));
  }
  if (version === 6) return implicit(7, addressBytes(host));
  return implicit(2, new TextEncoder().encode(host));
}

/** Bytes of an IPv6 address; the URL parser normalizes its form. */
function addressBytes(host: string): Uint8Array {
  const { hostname } = new URL(`http://[${host}]`);
  const [head = "", tail] = hostname.slice(1, -1).split("::");
  const groups = (text = "") => text === "" ? [] : text.split(":");
  const left = groups(head);
  const right = groups(tail);
  const zeros = Array(8 - left.length - right.length).fill("0");
  const digits = [...left, ...zeros, ...right]
    .map((group) => group.padStart(4, "0")).join("");
  return Buffer.from(digits, "hex");
}

/** Subject and public key of a certificate. */
function subjectOf(certificate: string): { name: Der; publicKey: Der } {
  const [, base64 = ""] =
    /-----BEGIN CERTIFICATE-----([^-]*)-----END/.exec(certificate) ?? [];
  const [content] = childrenOf(Buffer.from(base64, "base64"));
  const fields = content === undefined ? [] : childrenOf(content.whole);
  const [name, publicKey] = [fields[5], fields[6]];
  if (name === undefined || publicKey === undefined) {
    throw new TypeError(
      "Cannot issue a certificate: the authority must have a certificate in PEM",
    );
  }
  return { name: name.whole, publicKey: publicKey.whole };
}

function pem(label: string, content: Uint8Array): string {
  const base64 = Buffer.from(content).toString("base64");
  const lines = base64.match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${
    lines.join("\n")
  }\n-----END ${label}-----\n`;
}
