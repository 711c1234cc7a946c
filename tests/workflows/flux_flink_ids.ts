/**
 * The behaviours of Flux, kstatus and the Flink operator that tests show, by the
 * ids that stand in brackets in the titles of the tests.
 *
 * F: results and errors, settling a pass, conditions, merging them, writing
 * them, lint, requests, dependencies, interruption, notices, news, jitter,
 * access. K: the state of objects and of sets, waiting, health checks. L: phased
 * upgrades. X: what the originals get wrong, each a trap of theirs.
 */
export const FLUX_FLINK_IDS: Readonly<Record<string, readonly string[]>> = {
  flux: idsOf("F", 46),
  kstatus: idsOf("K", 13),
  flink: idsOf("L", 48),
  traps: [
    "X1", // a status that another writer changes in the midst of a pass
    "X2", // exactly one write for each change of a status
    "X3", // an object that is deleted and made anew under the same name
    "X4", // a crash after a rollback was deployed
    "X5", // an edit by the user between suspend and deploy
    "X6", // conditions name the generation seen, though there is a newer one
    "X7", // a wait without a delay waits, though the object is not Ready
  ],
};

function idsOf(letter: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${letter}${index + 1}`);
}
