import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.ref.Reference;
import java.util.Arrays;

public class Launcher {
    public static void main(String[] arguments) throws Exception {
        byte[] ballast = new byte[Integer.parseInt(arguments[0])];
        Arrays.fill(ballast, (byte) 1);
        System.out.println(ballast.length);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null; ) {
            int done = 0;
            for (int i = Integer.parseInt(line); i > 0; i--) {
                if (new ProcessBuilder(arguments[1]).start().waitFor() == Integer.parseInt(arguments[2])) {
                    done++;
                }
            }
            System.out.println(done);
        }
        Reference.reachabilityFence(ballast);
    }
}
