import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;

import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;

import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.Readable;

/**
 * Apache Kafka's own message classes as a second codec.
 *
 * Reads lines "message TAB version TAB hex TAB json" that say the same thing twice, and prints for each, separated
 * by tabs: what the decoded bytes are encoded to (hex), what they say (JSON), and what the JSON is encoded to (hex).
 * Instead of any of them stands what Kafka complained about.
 */
public class Reencode {
    private static final String[] PACKAGES = {
        "org.apache.kafka.common.message.",
        "org.apache.kafka.common.metadata.",
        "org.apache.kafka.coordinator.group.generated.",
        "org.apache.kafka.coordinator.share.generated.",
        "org.apache.kafka.coordinator.transaction.generated.",
        "org.apache.kafka.raft.generated.",
        "org.apache.kafka.server.log.remote.metadata.storage.generated.",
        "org.apache.kafka.storage.internals.log.",
        "org.apache.kafka.storage.generated.",
    };
    private static final ObjectMapper JSON = JsonMapper.builder()
        .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS)
        .disable(JsonWriteFeature.WRITE_NAN_AS_STRINGS)
        .build();
    private static final Map<String, Class<?>> CLASSES = new HashMap<>();

    private interface Attempt {
        String run() throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split("\t", -1);
            String name = parts[0];
            short version = Short.parseShort(parts[1]);
            byte[] encoded = HexFormat.of().parseHex(parts[2]);
            out.println(String.join("\t",
                attempt(() -> encode(decode(name, version, encoded), version)),
                attempt(() -> JSON.writeValueAsString(toJson(decode(name, version, encoded), version))),
                attempt(() -> encode(fromJson(name, version, JSON.readTree(parts[3])), version))));
        }
        out.flush();
    }

    private static String attempt(Attempt attempt) {
        try {
            return attempt.run();
        } catch (Exception refused) {
            return String.valueOf(refused.getCause() == null ? refused : refused.getCause()).replaceAll("\\s+", " ");
        }
    }

    private static Message decode(String name, short version, byte[] encoded) throws Exception {
        ByteBuffer buffer = ByteBuffer.wrap(encoded);
        Message message = (Message) messageClass(name)
            .getConstructor(Readable.class, short.class)
            .newInstance(new ByteBufferAccessor(buffer), version);
        if (buffer.hasRemaining()) {
            throw new IllegalArgumentException(buffer.remaining() + " bytes left over");
        }
        return message;
    }

    private static String encode(Message message, short version) {
        ByteBuffer buffer = MessageUtil.toByteBufferAccessor(message, version).buffer();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return HexFormat.of().formatHex(bytes);
    }

    private static JsonNode toJson(Message message, short version) throws Exception {
        Method write = converterOf(message.getClass())
            .getMethod("write", message.getClass(), short.class, boolean.class);
        return (JsonNode) write.invoke(null, message, version, false);
    }

    private static Message fromJson(String name, short version, JsonNode node) throws Exception {
        return (Message) converterOf(messageClass(name))
            .getMethod("read", JsonNode.class, short.class)
            .invoke(null, node, version);
    }

    private static Class<?> converterOf(Class<?> message) throws ClassNotFoundException {
        return Class.forName(message.getName() + "JsonConverter");
    }

    private static Class<?> messageClass(String name) throws ClassNotFoundException {
        Class<?> known = CLASSES.get(name);
        if (known != null) {
            return known;
        }
        for (String start : PACKAGES) {
            for (String end : new String[] {"", "Data"}) {
                try {
                    Class<?> found = Class.forName(start + name + end);
                    CLASSES.put(name, found);
                    return found;
                } catch (ClassNotFoundException elsewhere) {
                    continue;
                }
            }
        }
        throw new ClassNotFoundException(name);
    }
}
