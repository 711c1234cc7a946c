import type { Bench, Subject } from "./support/bench.ts";
import { followShapes } from "./support/shaped_operator.ts";

function subject(certificates: number): Subject {
  return {
    name: `${certificates.toLocaleString("en")} certificates`,
    run: () => followShapes("certificates", certificates),
    settings:
      "limitHeapGrowth(); each certificate with its CertificateRequest and Secret",
  };
}

export const bench: Bench = {
  name: "certificates",
  what:
    "the memory of an operator with cert-manager's objects; it has published 95, 314 and 528 MB",
  rounds: 3,
  subjects: [subject(1_000), subject(5_000), subject(10_000)],
};
