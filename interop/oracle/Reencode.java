import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;

import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;

/** Reads lines "message version hex", lets Apache Kafka's own class decode the bytes, and prints what it encodes. */
public class Reencode {
    private static final String[] PACKAGES = {
        "org.apache.kafka.common.message.",
        "org.apache.kafka.common.metadata.",
        "org.apache.kafka.coordinator.group.generated.",
        "org.apache.kafka.coordinator.share.generated.",
        "org.apache.kafka.coordinator.transaction.generated.",
        "org.apache.kafka.raft.generated.",
    };

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", -1);
            System.out.println(reencode(words[0], Short.parseShort(words[1]), HexFormat.of().parseHex(words[2])));
        }
    }

    private static String reencode(String name, short version, byte[] encoded) {
        try {
            ByteBuffer buffer = ByteBuffer.wrap(encoded);
            Message message = (Message) messageClass(name)
                .getConstructor(org.apache.kafka.common.protocol.Readable.class, short.class)
                .newInstance(new ByteBufferAccessor(buffer), version);
            if (buffer.hasRemaining()) {
                return buffer.remaining() + " bytes left over";
            }
            ByteBuffer again = MessageUtil.toByteBufferAccessor(message, version).buffer();
            byte[] bytes = new byte[again.remaining()];
            again.get(bytes);
            return HexFormat.of().formatHex(bytes);
        } catch (ReflectiveOperationException refused) {
            return String.valueOf(refused.getCause() == null ? refused : refused.getCause());
        }
    }

    private static Class<?> messageClass(String name) throws ClassNotFoundException {
        for (String start : PACKAGES) {
            for (String end : new String[] {"", "Data"}) {
                try {
                    return Class.forName(start + name + end);
                } catch (ClassNotFoundException elsewhere) {
                    continue;
                }
            }
        }
        throw new ClassNotFoundException(name);
    }
}
