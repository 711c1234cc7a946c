import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { type Logger, silentLogger } from "@coracle/operator/client";
import {
  createAuthority,
  issueCertificate,
} from "../../../core/admission/certificates.ts";
import {
  FileCertificates,
  filesIn,
} from "../../../core/admission/served_certificates.ts";
import { temporaryFolder } from "../../support/temporary_folder.ts";

const authority = createAuthority({ commonName: "files" });

function issue() {
  return issueCertificate(authority, {
    commonName: "webhooks",
    usage: "server",
    hosts: ["localhost"],
  });
}

test("FileCertificates keeps the pair before while a replacement is not whole", async () => {
  const folder = temporaryFolder();
  const write = (name: string, text: string) =>
    writeFileSync(join(folder, name), text);
  const [first, second] = [issue(), issue()];
  // Authorities may have comments in any language.
  const bundle = `# Behörde ✓\n${authority.certificate}`;
  write("ca.crt", bundle);
  write("tls.crt", first.certificate);
  write("tls.key", first.key);
  const warnings: string[] = [];
  const log: Logger = {
    ...silentLogger,
    warn: (message) => void warnings.push(message),
  };
  const certificates = new FileCertificates(filesIn(folder), {
    log,
    subject: "webhook",
  });
  const { certificate, key } = first;
  const before = { serving: { certificate, key }, bundle };
  assert.deepEqual(await certificates.read(), before);
  // The certificate is replaced before its key.
  write("tls.crt", second.certificate);
  assert.deepEqual(await certificates.read(), before);
  assert.deepEqual(await certificates.read(), before);
  assert.equal(warnings.length, 1);
  write("tls.key", second.key);
  const { serving } = await certificates.read();
  assert.equal(serving.certificate, second.certificate);
  assert.equal(serving.key, second.key);
});

test("FileCertificates names a file that is missing at the start, and no key", async () => {
  const folder = temporaryFolder();
  const { certificate, key } = issue();
  writeFileSync(join(folder, "tls.crt"), certificate);
  writeFileSync(join(folder, "tls.key"), key);
  const certificates = new FileCertificates(filesIn(folder), {
    log: silentLogger,
    subject: "webhook",
  });
  await assert.rejects(certificates.read(), (error: Error) => {
    assert.match(
      error.message,
      /^Cannot read the webhook certificates: \S+ca\.crt must be a readable file: received /,
    );
    return !error.message.includes("PRIVATE KEY");
  });
});
