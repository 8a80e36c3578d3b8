import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Scanner;

import javax.security.auth.login.AppConfigurationEntry;

import org.apache.kafka.common.security.oauthbearer.BrokerJwtValidator;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;

import org.jose4j.jwt.NumericDate;
import org.jose4j.jwt.consumer.NumericDateValidator;

/** Reads tokens with the keys and rules of a listener, one JSON object per line, and prints what each one says, or why it is refused. */
public class BearerTokens {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String PREFIX = "sasl.oauthbearer.";

    public static void main(String[] arguments) throws Exception {
        Path keys = Files.createTempFile("keys", ".json");
        System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.urls", keys.toUri().toString());
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            System.out.println(JSON.writeValueAsString(told(JSON.readTree(lines.nextLine()), keys)));
        }
        Files.delete(keys);
    }

    private static Map<String, Object> told(JsonNode shown, Path keys) throws Exception {
        Files.writeString(keys, JSON.writeValueAsString(Map.of("keys", shown.get("keys"))));
        BrokerJwtValidator validator = new BrokerJwtValidator();
        validator.configure(configs(shown.get("rules"), keys), OAuthBearerLoginModule.OAUTHBEARER_MECHANISM,
            List.of(new AppConfigurationEntry(OAuthBearerLoginModule.class.getName(),
                AppConfigurationEntry.LoginModuleControlFlag.REQUIRED, Map.of())));
        Object consumer = own(validator, "jwtConsumer");
        for (Object each : (List<?>) own(consumer, "validators")) {
            if (each instanceof NumericDateValidator) {
                ((NumericDateValidator) each).setEvaluationTime(
                    NumericDate.fromMilliseconds(shown.get("now_ms").asLong()));
            }
        }
        try {
            OAuthBearerToken token = validator.validate(shown.get("token").asText());
            return Map.of("user", token.principalName(), "expires_ms", token.lifetimeMs());
        } catch (Exception refusal) {
            return Map.of("refusal", refusal.toString());
        } finally {
            validator.close();
        }
    }

    private static Map<String, Object> configs(JsonNode rules, Path keys) {
        Map<String, Object> configs = new HashMap<>();
        configs.put(PREFIX + "jwks.endpoint.url", keys.toUri().toString());
        configs.put(PREFIX + "expected.issuer", rules.get("issuer").isNull() ? null : rules.get("issuer").asText());
        List<String> audiences = new ArrayList<>();
        rules.get("audiences").forEach(each -> audiences.add(each.asText()));
        configs.put(PREFIX + "expected.audience", audiences);
        configs.put(PREFIX + "scope.claim.name", rules.get("scope_claim").asText());
        configs.put(PREFIX + "sub.claim.name", rules.get("principal_claim").asText());
        configs.put(PREFIX + "clock.skew.seconds", rules.get("clock_skew_s").asInt());
        configs.put(PREFIX + "jwt.validator.class", BrokerJwtValidator.class.getName());
        return configs;
    }

    private static Object own(Object object, String name) throws ReflectiveOperationException {
        Field field = object.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(object);
    }
}
