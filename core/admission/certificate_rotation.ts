import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import {
  createAuthority,
  issueCertificate,
  type KeyPair,
} from "./certificates.ts";

/**
 * Certificates of a server, and the authorities that clients trust. The replicas of
 * a webhook listener share them.
 */
export interface CertificateState {
  /** Certificate and key that the listener serves. */
  readonly serving: KeyPair;
  /** Authority that has signed them. */
  readonly authority: KeyPair;
  /** Authority that will follow: it is trusted, and signs nothing yet. */
  readonly next?: (KeyPair & Since) | undefined;
  /** Authority before: it still is trusted. */
  readonly previous?: ({ readonly certificate: string } & Since) | undefined;
}

interface Since {
  /** Time at which the authority got this role, in milliseconds since the Unix epoch. */
  readonly since: number;
}

/** Times of a rotation, in milliseconds. */
export interface RotationTimes {
  /** Validity of an authority. */
  readonly authority: number;
  /** Validity of a served certificate. */
  readonly serving: number;
  /**
   * Time for which both authorities are trusted before the new one signs, so that
   * each API server knows it.
   */
  readonly overlap: number;
  /** Time for which the authority before is trusted, so that no replica serves its certificates. */
  readonly farewell: number;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export const ROTATION_TIMES: RotationTimes = {
  authority: 365 * DAY_MS,
  serving: 90 * DAY_MS,
  overlap: HOUR_MS / 6,
  farewell: DAY_MS,
};

/** Part of a validity after which a certificate is replaced. */
const RENEWAL = 2 / 3;

/** What a rotation depends on. */
export interface RotationContext {
  /** Time, in milliseconds since the Unix epoch. */
  readonly now: number;
  /** Names under which the listener is called. */
  readonly hosts: readonly string[];
  readonly times: RotationTimes;
  /**
   * Whether the API server has been told of both authorities: each registered
   * webhook has the bundle of the state.
   */
  readonly isRegistered: boolean;
}

/** Certificate authorities that clients must trust, in PEM. */
export function trustBundle(
  { authority, next, previous }: CertificateState,
): string {
  return [authority, next, previous]
    .map((one) => one?.certificate.trim())
    .filter((one) => one !== undefined)
    .map((one) => `${one}\n`)
    .join("");
}

/** First certificates of a listener. */
export function firstCertificates(
  context: Omit<RotationContext, "isRegistered">,
): CertificateState {
  const authority = newAuthority(context);
  return { authority, serving: newServing(authority, context) };
}

/**
 * Next step of a rotation; undefined if nothing is due.
 *
 * An authority is followed in three steps, so that at no time a client meets a
 * certificate of an authority that it does not trust: the new one is trusted beside
 * the old one; when the API server has been told, the new one signs; later, the old
 * one is forgotten.
 */
export function nextCertificates(
  state: CertificateState,
  context: RotationContext,
): CertificateState | undefined {
  const { authority, next, previous, serving } = state;
  const { now, hosts, times, isRegistered } = context;
  if (isPast(authority.certificate, now, 1) || isAhead(authority, now)) {
    // Nobody trusts it now, so that nothing is to be kept.
    return firstCertificates(context);
  }
  if (next !== undefined) {
    const isTrusted = isRegistered && !isAhead(next, now) &&
      now - next.since >= times.overlap;
    if (isTrusted) {
      const { since: _, ...pair } = next;
      return {
        authority: pair,
        serving: newServing(pair, context),
        previous: { certificate: authority.certificate, since: now },
      };
    }
    if (isAhead(next, now)) {
      return { ...state, next: { ...newAuthority(context), since: now } };
    }
  } else if (isPast(authority.certificate, now, RENEWAL)) {
    return { ...state, next: { ...newAuthority(context), since: now } };
  }
  if (
    isPast(serving.certificate, now, RENEWAL) || isAhead(serving, now) ||
    !serves(serving, hosts)
  ) {
    return { ...state, serving: newServing(authority, context) };
  }
  if (previous !== undefined && now - previous.since >= times.farewell) {
    return { ...state, previous: undefined };
  }
  return undefined;
}

/** End of the validity of a certificate, in milliseconds since the Unix epoch. */
export function expiryOf(certificate: string): number {
  return Date.parse(new X509Certificate(certificate).validTo);
}

/** Whether a part of the validity of a certificate has passed. */
function isPast(certificate: string, now: number, part: number): boolean {
  const { validFrom, validTo } = new X509Certificate(certificate);
  const from = Date.parse(validFrom);
  return now >= from + (Date.parse(validTo) - from) * part;
}

/** Whether a certificate is not valid yet: the clock was ahead when it was issued. */
function isAhead({ certificate }: Pick<KeyPair, "certificate">, now: number) {
  return now < Date.parse(new X509Certificate(certificate).validFrom);
}

/** Whether a certificate is for all of the names. */
function serves({ certificate }: KeyPair, hosts: readonly string[]): boolean {
  const { subjectAltName = "" } = new X509Certificate(certificate);
  const names = subjectAltName.split(", ").map((name) =>
    shortest(name.slice(name.indexOf(":") + 1))
  );
  return hosts.every((host) => names.includes(shortest(host)));
}

/** A name, an address of IPv6 in its shortest form: runtimes print others. */
function shortest(name: string): string {
  return isIP(name) === 6 ? new URL(`http://[${name}]`).hostname : name;
}

function newAuthority(
  { now, times }: Pick<RotationContext, "now" | "times">,
): KeyPair {
  return createAuthority({
    // Distinct subjects: clients find the issuer of a certificate by its name.
    commonName: `coracle-${crypto.randomUUID()}`,
    now,
    validFor: times.authority,
    backdate: Math.min(HOUR_MS, times.authority),
  });
}

function newServing(
  authority: KeyPair,
  { now, hosts, times }: Pick<RotationContext, "now" | "hosts" | "times">,
): KeyPair {
  const left = expiryOf(authority.certificate) - now;
  return issueCertificate(authority, {
    // Names have at most 64 characters here; clients read the alternative ones.
    commonName: (hosts[0] ?? "coracle").slice(0, 64),
    usage: "server",
    hosts,
    now,
    // A certificate must not outlive its authority.
    validFor: Math.max(Math.floor(Math.min(times.serving, left)), 1),
    backdate: Math.min(HOUR_MS, times.serving),
  });
}
