import { defineKind, Operator } from "@coracle/operator";
import {
  conditionedStatus,
  intervalSchedule,
  readyColumns,
  REQUESTED_AT,
  Stalled,
  summarized,
} from "@coracle/operator/workflows";
import { z } from "zod";

const Website = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Website",
  spec: z.object({ url: z.string(), interval: z.string().default("1m") }),
  status: conditionedStatus(),
  printerColumns: readyColumns,
});

const operator = new Operator();

operator.register(
  Website,
  summarized(Website, {
    schedule: ({ spec }) => intervalSchedule(spec.interval),
  }, [
    ({ object }) => {
      if (URL.canParse(object.spec.url)) return;
      throw new Stalled("InvalidURL", "spec.url is not a URL");
    },
    async (pass) => {
      await pass.failing({ type: "Down", reason: "Unreachable" }, async () => {
        const { url } = pass.object.spec;
        const { ok, status } = await fetch(url, { signal: pass.signal });
        if (!ok) throw new Error(`It answers ${status}`);
      });
      pass.set({ type: "Up", status: "True", reason: "Answers" });
    },
  ]),
  { requestAnnotations: [REQUESTED_AT], install: true },
);

await operator.run();
