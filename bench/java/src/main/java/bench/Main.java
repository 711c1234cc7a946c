package bench;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.management.OperatingSystemMXBean;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.logging.LogManager;

/**
 * Rivals of Coracle that are written in Java, each as its own documentation says. Every measure is
 * one line of JSON, in the form of bench/support/bench.ts.
 */
public final class Main {
  private static final ObjectMapper JSON = new ObjectMapper();

  private Main() {}

  public static void main(String[] args) throws Exception {
    // Vert.x warns with stack traces while the classes load.
    LogManager.getLogManager().reset();
    switch (args.length == 3 ? args[0] : "") {
      case "reconcile" -> GreetingOperator.run(client(args[1]), new GreetingOperator());
      case "cleanup" -> GreetingOperator.run(client(args[1]), new GreetingCleaner());
      case "follow" -> Follower.run(args[1], Integer.parseInt(args[2]));
      default -> {
        System.err.println("usage: bench reconcile|cleanup KUBECONFIG OBJECTS | follow URL EVENTS");
        System.exit(1);
      }
    }
    System.exit(0);
  }

  private static KubernetesClient client(String kubeconfig) throws Exception {
    Config config = Config.fromKubeconfig(Files.readString(Path.of(kubeconfig)));
    return new KubernetesClientBuilder().withConfig(config).build();
  }

  /** Prints a value for the process that started this one. */
  static void tell(Map<String, ?> value) throws Exception {
    System.out.println(JSON.writeValueAsString(value));
  }

  /** Processor time of all threads, in microseconds. */
  static double cpuMicroseconds() {
    var system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    return system.getProcessCpuTime() / 1e3;
  }

  /** Measures since a start, per piece of work. */
  static List<Map<String, ?>> measures(long start, double cpu, int pieces, String piece)
      throws Exception {
    return List.of(
        Map.of("unit", "µs CPU/" + piece, "value", (cpuMicroseconds() - cpu) / pieces),
        Map.of("unit", "µs/" + piece, "value", (System.nanoTime() - start) / 1e3 / pieces),
        Map.of("unit", "MiB peak RSS", "value", peakRss()));
  }

  private static double peakRss() throws Exception {
    String line =
        Files.readAllLines(Path.of("/proc/self/status")).stream()
            .filter(text -> text.startsWith("VmHWM:"))
            .findFirst()
            .orElseThrow();
    return Double.parseDouble(line.replaceAll("[^0-9]", "")) / 1024;
  }
}
