import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { test } from "node:test";
import {
  type CertificateState,
  expiryOf,
  firstCertificates,
  nextCertificates,
  ROTATION_TIMES,
  trustBundle,
} from "../../../core/admission/certificate_rotation.ts";

const DAY_MS = 24 * 3_600_000;
const times = ROTATION_TIMES;
const hosts = ["web.shop.svc"];
const START = Date.UTC(2026, 0, 1);

/** Whether a bundle has the authority of the served certificate. */
function isTrusted(bundle: string, { serving }: CertificateState): boolean {
  const served = new X509Certificate(serving.certificate);
  return bundle.split(/(?<=-----END CERTIFICATE-----\n)/).some((authority) =>
    served.verify(new X509Certificate(authority).publicKey)
  );
}

test("over two years each served certificate is trusted by the bundles around it", () => {
  let state = firstCertificates({ now: START, hosts, times });
  let registered = trustBundle(state);
  const authorities = new Set([state.authority.certificate]);
  const served = new Set([state.serving.certificate]);
  for (let now = START; now < START + 730 * DAY_MS; now += DAY_MS) {
    const before = registered;
    const isRegistered = registered === trustBundle(state);
    const context = { now, hosts, times, isRegistered };
    const changed = nextCertificates(state, context);
    if (changed === undefined) continue;
    state = changed;
    // Neither the bundle that an API server still has nor the next may fail.
    assert(isTrusted(before, state), new Date(now).toISOString());
    registered = trustBundle(state);
    assert(isTrusted(registered, state));
    assert(expiryOf(state.serving.certificate) > now + 25 * DAY_MS);
    assert(
      expiryOf(state.serving.certificate) <=
        expiryOf(state.authority.certificate),
    );
    authorities.add(state.authority.certificate);
    served.add(state.serving.certificate);
  }
  assert.equal(authorities.size, 3);
  assert(served.size > 10);
});

test("a new authority signs only once the API server knows it", () => {
  const first = firstCertificates({ now: START, hosts, times });
  const due = START + 250 * DAY_MS;
  const context = { hosts, times, isRegistered: false };
  const introduced = nextCertificates(first, { ...context, now: due });
  assert(introduced?.next !== undefined);
  assert.equal(trustBundle(introduced).split("BEGIN").length - 1, 2);
  const later = due + 10 * DAY_MS;
  // The served certificate is renewed by the old one in that time.
  const renewed = nextCertificates(introduced, { ...context, now: due });
  assert.equal(renewed?.authority, introduced.authority);
  const known = { ...context, isRegistered: true };
  assert.equal(
    nextCertificates(renewed, { ...known, now: due + times.overlap - 1 }),
    undefined,
  );
  const promoted = nextCertificates(renewed, { ...known, now: later });
  assert.equal(promoted?.authority.certificate, introduced.next.certificate);
  assert.equal(promoted.previous?.certificate, first.authority.certificate);
  const forgotten = nextCertificates(promoted, {
    ...known,
    now: later + times.farewell,
  });
  assert.equal(forgotten?.previous, undefined);
});

test("certificates from a clock that was ahead are replaced when it is put back", () => {
  const context = { now: START, hosts, times, isRegistered: true };
  const isValid = (certificate: string) =>
    Date.parse(new X509Certificate(certificate).validFrom) <= START &&
    expiryOf(certificate) > START;
  const ahead = firstCertificates({ ...context, now: START + 2 * DAY_MS });
  const restarted = nextCertificates(ahead, context);
  assert(restarted !== undefined);
  assert(isValid(restarted.authority.certificate));
  assert(isValid(restarted.serving.certificate));
  assert(isTrusted(trustBundle(restarted), restarted));
  assert.equal(nextCertificates(restarted, context), undefined);
  // Those of an authority that is valid.
  const served = nextCertificates(
    { ...restarted, serving: ahead.serving },
    context,
  );
  assert(served !== undefined);
  assert.equal(served.authority, restarted.authority);
  assert(isValid(served.serving.certificate));
  const next = { ...ahead.authority, since: START + 2 * DAY_MS };
  const followed = nextCertificates({ ...restarted, next }, context);
  assert(followed?.next !== undefined);
  assert.equal(followed.next.since, START);
  assert(isValid(followed.next.certificate));
});

test("a certificate for other names is replaced by one for those of the Service", () => {
  const first = firstCertificates({ now: START, hosts, times });
  const context = { now: START, times, isRegistered: true };
  assert.equal(nextCertificates(first, { ...context, hosts }), undefined);
  const moved = nextCertificates(first, { ...context, hosts: ["b.shop.svc"] });
  assert.match(
    new X509Certificate(moved?.serving.certificate ?? "").subjectAltName ?? "",
    /DNS:b\.shop\.svc/,
  );
});

test("a certificate for an address of IPv6 is kept as long as one for a name", () => {
  for (const host of ["::1", "fd00::5:1", "127.0.0.1"]) {
    const context = { now: START, hosts: [host], times, isRegistered: true };
    const first = firstCertificates(context);
    assert.equal(nextCertificates(first, context), undefined, host);
    const other = { ...context, hosts: ["fd00::5:2"] };
    assert.notEqual(nextCertificates(first, other), undefined);
  }
});
