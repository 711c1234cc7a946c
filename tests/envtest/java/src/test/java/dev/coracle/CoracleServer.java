package dev.coracle;

import io.fabric8.kubernetes.client.Config;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/** API server of a test class, in a process of its own. */
public final class CoracleServer implements BeforeAllCallback, AfterAllCallback {
  private Process process;
  private Path kubeconfig;

  @Override
  public void beforeAll(ExtensionContext context) throws Exception {
    kubeconfig = Files.createTempDirectory("coracle").resolve("kubeconfig");
    var command = System.getenv().getOrDefault("CORACLE", "npx -y -p @coracle/operator coracle");
    var words = new ArrayList<>(List.of(command.split(" ")));
    words.addAll(List.of("apiserver", "--port=0", "--kubeconfig=" + kubeconfig));
    process = new ProcessBuilder(words)
        .redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
    // The kubeconfig is written when the server is ready.
    while (!Files.exists(kubeconfig)) {
      if (process.waitFor(10, TimeUnit.MILLISECONDS)) {
        throw new IllegalStateException("coracle apiserver ended with " + process.exitValue());
      }
    }
  }

  @Override
  public void afterAll(ExtensionContext context) throws InterruptedException {
    process.destroy();
    process.waitFor();
  }

  public Config config() {
    try {
      return Config.fromKubeconfig(Files.readString(kubeconfig));
    } catch (IOException error) {
      throw new IllegalStateException(error);
    }
  }
}
