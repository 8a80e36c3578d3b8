import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Scanner;

import kafka.network.ConnectionQuotas;
import org.apache.kafka.network.ConnectionThrottledException;
import kafka.server.KafkaConfig;

import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.utils.Time;

import scala.Option;

/** Reads connections that come at their times, one JSON object per line, and prints how long each one has to wait. */
public class ConnectionRates {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final ListenerName CLIENTS = new ListenerName("CLIENTS");
    private static final int UNLIMITED = Integer.MAX_VALUE;
    private static long nowMs = 1_000_000;

    public static void main(String[] arguments) throws Exception {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            System.out.println(JSON.writeValueAsString(waits(JSON.readTree(lines.nextLine()))));
        }
    }

    private static List<Long> waits(JsonNode connections) throws Exception {
        KafkaConfig config = KafkaConfig.fromProps(properties(connections));
        Time time = (Time) Proxy.newProxyInstance(Time.class.getClassLoader(), new Class<?>[] {Time.class},
            (proxy, method, arguments) -> method.getName().equals("nanoseconds") ? nowMs * 1_000_000 : nowMs);
        ConnectionQuotas quotas = new ConnectionQuotas(config, time, new Metrics(time));
        quotas.addListener(config, CLIENTS);
        List<Long> waits = new ArrayList<>();
        for (JsonNode connection : connections.get("connections")) {
            nowMs += connection.get(0).asInt();
            int rate = connection.get(1).asInt();
            waits.add(connections.get("of").asText().equals("address") ?
                ofAddress(quotas, rate) : ofBroker(quotas, rate));
        }
        return waits;
    }

    private static long ofBroker(ConnectionQuotas quotas, int rate) throws Exception {
        quotas.updateBrokerMaxConnectionRate(rate);
        return (long) own("recordConnectionAndGetThrottleTimeMs", ListenerName.class, long.class).
            invoke(quotas, CLIENTS, nowMs);
    }

    private static long ofAddress(ConnectionQuotas quotas, int rate) throws Exception {
        InetAddress address = InetAddress.getByName("10.0.0.1");
        quotas.updateIpConnectionRateQuota(Option.apply(address), Option.apply(rate));
        try {
            own("recordIpConnectionMaybeThrottle", ListenerName.class, InetAddress.class).
                invoke(quotas, CLIENTS, address);
            return 0;
        } catch (InvocationTargetException refused) {
            return ((ConnectionThrottledException) refused.getCause()).throttleTimeMs;
        }
    }

    private static Method own(String name, Class<?>... arguments) throws NoSuchMethodException {
        Method method = ConnectionQuotas.class.getDeclaredMethod(name, arguments);
        method.setAccessible(true);
        return method;
    }

    private static java.util.Properties properties(JsonNode connections) {
        java.util.Properties properties = new java.util.Properties();
        properties.putAll(Map.of(
            "process.roles", "broker",
            "node.id", "1",
            "listeners", "CLIENTS://127.0.0.1:0,INSIDE://127.0.0.1:0",
            "listener.security.protocol.map", "CLIENTS:PLAINTEXT,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name", "INSIDE",
            "controller.listener.names", "CONTROLLER",
            "controller.quorum.bootstrap.servers", "127.0.0.1:1",
            "quota.window.num", connections.get("samples").asText(),
            "quota.window.size.seconds", connections.get("sample_seconds").asText()));
        return properties;
    }
}
