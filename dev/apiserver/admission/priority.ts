import type { Pod, PriorityClass } from "@coracle/operator/kinds";
import { type AdmissionPlugin, type Attributes, refusal } from "./admission.ts";

const PRIORITY_CLASSES = {
  group: "scheduling.k8s.io",
  plural: "priorityclasses",
} as const;

/** Values of the built-in priority classes. */
const SYSTEM_PRIORITIES: ReadonlyMap<string, number> = new Map([
  ["system-cluster-critical", 2_000_000_000],
  ["system-node-critical", 2_000_001_000],
]);

/** Plug-in that resolves the priority class of new Pods, and keeps the priority of others. */
export const POD_PRIORITY: AdmissionPlugin = {
  name: "Priority",
  resources: ["pods", "priorityclasses.scheduling.k8s.io"],
  mutate(attributes): void {
    if (attributes.request.definition.plural !== "pods") return;
    const { spec } = attributes.object as unknown as Pod;
    if (attributes.operation === "UPDATE") {
      const live = (attributes.oldObject as unknown as Pod).spec;
      if (live.priority !== undefined) spec.priority ??= live.priority;
      if (live.preemptionPolicy !== undefined) {
        spec.preemptionPolicy ??= live.preemptionPolicy;
      }
      return;
    }
    const name = spec.priorityClassName;
    const found = name ? classOf(attributes, name) : defaultClass(attributes);
    const {
      value: priority = 0,
      preemptionPolicy = "PreemptLowerPriority",
    } = found ?? {};
    if (found?.metadata && !name) spec.priorityClassName = found.metadata.name;
    const check = (what: string, given: unknown, computed: unknown) => {
      if (given === undefined || given === computed) return;
      throw refusal(
        attributes,
        `the ${what} (${given}) must not be provided in pod spec; priority admission controller computed ${computed} from the given PriorityClass name`,
      );
    };
    check("integer value of priority", spec.priority, priority);
    check(
      "string value of PreemptionPolicy",
      spec.preemptionPolicy,
      preemptionPolicy,
    );
    Object.assign(spec, { priority, preemptionPolicy });
  },
  validate(attributes): void {
    const { object, operation, request } = attributes;
    if (request.definition.plural !== PRIORITY_CLASSES.plural) return;
    const { metadata, globalDefault } = object as unknown as PriorityClass;
    const other = globalDefault && defaultClass(attributes)?.metadata?.name;
    if (!other || (operation === "UPDATE" && other === metadata?.name)) return;
    throw refusal(
      attributes,
      `PriorityClass ${other} is already marked as default. Only one default can exist`,
    );
  },
};

/** Fields of a priority class that admission uses. */
type Resolved = Partial<PriorityClass> & Pick<PriorityClass, "value">;

function classOf(attributes: Attributes, name: string): Resolved {
  const found = attributes.hooks.find(PRIORITY_CLASSES, { name });
  if (found !== undefined) return found as unknown as PriorityClass;
  const value = SYSTEM_PRIORITIES.get(name);
  if (value !== undefined) return { value };
  throw refusal(attributes, `no PriorityClass with name ${name} was found`);
}

/** Global default priority class with the lowest value. */
function defaultClass({ hooks }: Attributes): PriorityClass | undefined {
  let found: PriorityClass | undefined;
  for (const object of hooks.list(PRIORITY_CLASSES)) {
    const candidate = object as unknown as PriorityClass;
    if (!candidate.globalDefault) continue;
    if (!found || (candidate.value ?? 0) < (found.value ?? 0)) {
      found = candidate;
    }
  }
  return found;
}
