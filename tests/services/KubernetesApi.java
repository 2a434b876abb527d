import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.fabric8.kubernetes.client.server.mock.KubernetesCrudDispatcher;
import io.fabric8.kubernetes.client.server.mock.KubernetesMockServer;
import io.fabric8.kubernetes.client.utils.Serialization;
import io.fabric8.mockwebserver.Context;
import io.fabric8.mockwebserver.MockWebServer;
import io.fabric8.mockwebserver.dsl.HttpMethod;
import io.fabric8.mockwebserver.http.Buffer;
import io.fabric8.mockwebserver.http.Dispatcher;
import io.fabric8.mockwebserver.http.MockResponse;
import io.fabric8.mockwebserver.http.RecordedRequest;
import java.net.InetAddress;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Fabric8's server with Kubernetes' API over HTTP: it stores objects, answers lists with selectors, and watches.
 *
 * Added are the phase of a new pod, and the refusals that users meet: a wrong token, and a namespace or a service
 * account that does not exist. Server-side apply, which it does not know, creates or replaces.
 *
 * Arguments: the host, the port, the token, the namespaces and the service accounts, separated by commas.
 */
public class KubernetesApi extends Dispatcher {
  private static final Pattern IN_NAMESPACE = Pattern.compile("/api/v1/namespaces/([^/?]+)/([^/?]+).*");
  private static final Pattern APPLIED = Pattern.compile("([^?]+)/([^/?]+)(\\?.*)?");

  private final KubernetesCrudDispatcher stored = new KubernetesCrudDispatcher();
  private final String token;
  private final Set<String> namespaces;
  private final Set<String> accounts;

  private KubernetesApi(String token, Set<String> namespaces, Set<String> accounts) {
    this.token = token;
    this.namespaces = namespaces;
    this.accounts = accounts;
  }

  public static void main(String[] given) throws Exception {
    var api = new KubernetesApi(given[2], Set.of(given[3].split(",")), Set.of(given[4].split(",")));
    var server = new KubernetesMockServer(new Context(), new MockWebServer(), new HashMap<>(), api, false);
    server.init(InetAddress.getByName(given[0]), Integer.parseInt(given[1]));
    Thread.currentThread().join();
  }

  @Override
  public MockResponse dispatch(RecordedRequest request) {
    if (!("Bearer " + token).equals(request.getHeader("Authorization"))) {
      return refused(401, "Unauthorized", "Unauthorized");
    }
    String body = request.getUtf8Body(); // can be read once
    boolean isApplied = "PATCH".equals(request.getMethod())
        && String.valueOf(request.getHeader("Content-Type")).startsWith("application/apply-patch");
    Matcher found = IN_NAMESPACE.matcher(request.getPath());
    if (found.matches() && ("POST".equals(request.getMethod()) || isApplied)) {
      if (!namespaces.contains(found.group(1))) {
        return refused(404, "NotFound", "namespaces \"" + found.group(1) + "\" not found");
      }
      JsonNode object = Serialization.unmarshal(body, JsonNode.class);
      String account = object.at("/spec/serviceAccountName").asText("default");
      if ("pods".equals(found.group(2)) && !accounts.contains(account)) {
        String pod = "pods \"" + object.at("/metadata/name").asText() + "\" is forbidden: ";
        String missing = "serviceaccount \"" + account + "\" not found";
        return refused(403, "Forbidden",
            pod + "error looking up service account " + found.group(1) + "/" + account + ": " + missing);
      }
      if ("pods".equals(found.group(2))) {
        ((ObjectNode) object).putObject("status").put("phase", "Pending");
        body = Serialization.asJson(object);
      }
    }
    if (!isApplied) {
      return stored.dispatch(same(request, request.method(), request.getPath(), body));
    }
    Matcher path = APPLIED.matcher(request.getPath());
    path.matches();
    String object = path.group(1) + "/" + path.group(2);
    boolean exists = stored.handleGet(object).code() == 200;
    String json = Serialization.asJson(Serialization.unmarshal(body, JsonNode.class));
    return stored.dispatch(
        exists ? same(request, HttpMethod.PUT, object, json) : same(request, HttpMethod.POST, path.group(1), json));
  }

  private static RecordedRequest same(RecordedRequest request, HttpMethod method, String path, String body) {
    return new RecordedRequest(
        request.getHttpVersion(), method, path, request.getHeaders(), new Buffer().writeUtf8(body == null ? "" : body));
  }

  private static MockResponse refused(int code, String reason, String message) {
    Map<String, Object> status = Map.of(
        "kind", "Status", "apiVersion", "v1", "metadata", Map.of(), "status", "Failure", "message", message,
        "reason", reason, "code", code);
    return new MockResponse().setResponseCode(code).setBody(Serialization.asJson(status))
        .setHeader("Content-Type", "application/json");
  }
}
