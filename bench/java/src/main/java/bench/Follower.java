package bench;

import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.ConfigBuilder;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.CountDownLatch;

/** A cache of Pods by an informer of the fabric8 client. */
final class Follower implements ResourceEventHandler<Pod> {
  private final CountDownLatch events;
  private volatile String version = "";

  private Follower(int events) {
    this.events = new CountDownLatch(events);
  }

  @Override
  public void onAdd(Pod pod) {}

  @Override
  public void onUpdate(Pod before, Pod pod) {
    version = pod.getMetadata().getResourceVersion();
    events.countDown();
  }

  @Override
  public void onDelete(Pod pod, boolean finalStateUnknown) {}

  /**
   * Follows Pods. The input is the certificate of the server's authority; a second line of output
   * comes when the follower has seen so many events.
   */
  static void run(String url, int count) throws Exception {
    String authority = new String(System.in.readAllBytes(), StandardCharsets.UTF_8);
    long start = System.nanoTime();
    double cpu = Main.cpuMicroseconds();
    Config config =
        new ConfigBuilder(Config.empty()).withMasterUrl(url).withCaCertData(authority).build();
    try (var client = new KubernetesClientBuilder().withConfig(config).build()) {
      Follower follower = new Follower(count);
      var informer = client.pods().inAnyNamespace().inform(follower);
      int size = informer.getStore().list().size();
      Main.tell(
          Map.of(
              "size", size, "version", "", "measures", Main.measures(start, cpu, size, "object")));
      if (count == 0) return;
      start = System.nanoTime();
      cpu = Main.cpuMicroseconds();
      follower.events.await();
      Main.tell(
          Map.of(
              "size",
              size,
              "version",
              follower.version,
              "measures",
              Main.measures(start, cpu, count, "event")));
    }
  }
}
