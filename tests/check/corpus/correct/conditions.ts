/** Correct: conditions by `summarized`, with the observed generation. */
import { defineKind, Operator } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import {
  conditionedStatus,
  intervalSchedule,
  Stalled,
  summarized,
} from "@coracle/operator/workflows";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = { expects: ["ConfigMap sample-part"] };

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ mode: z.enum(["small", "impossible"]) }),
  status: conditionedStatus(),
});

const operator: Operator = new Operator();
operator.register(
  Gadget,
  summarized(Gadget, { schedule: () => intervalSchedule("6h") }, [
    async ({ object, ctx }) => {
      await ctx.apply(ConfigMap, {
        metadata: { name: `${object.metadata.name}-part` },
        data: { made: "yes" },
      });
    },
    ({ object }) => {
      if (object.spec.mode !== "impossible") return;
      throw new Stalled("Impossible", "spec.mode is not possible");
    },
  ]),
  { owns: [ConfigMap], install: true },
);
export default operator;
