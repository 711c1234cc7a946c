package bench;

import io.fabric8.kubernetes.api.model.Namespaced;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Version;

/** The kind of bench/support/greeting.ts. */
@Group("bench.coracle.dev")
@Version("v1")
public class Greeting extends CustomResource<Greeting.Spec, Greeting.Status> implements Namespaced {
  /** Whom to greet. */
  public static final class Spec {
    public String name;
  }

  /** The greeting. */
  public static final class Status {
    public String text;
  }
}
