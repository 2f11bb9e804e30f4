import java.io.File;
import java.io.FileOutputStream;
import java.util.Iterator;
import java.util.Map;
import java.util.jar.JarOutputStream;
import java.util.zip.ZipEntry;
import org.codehaus.janino.SimpleCompiler;

/**
 * Compiles a source file into a jar, where there is a Java without a compiler: Build SOURCE JAR, itself run by
 * Janino, which is part of Flink's table runtime. What Janino does not know (lambdas, inference of generic
 * types) these files do without.
 */
public class Build {
    public static void main(String[] args) throws Exception {
        SimpleCompiler compiler = new SimpleCompiler();
        compiler.setTargetVersion(8);
        compiler.cookFile(new File(args[0]));
        JarOutputStream jar = new JarOutputStream(new FileOutputStream(args[1]));
        for (Iterator it = compiler.getBytecodes().entrySet().iterator(); it.hasNext();) {
            Map.Entry entry = (Map.Entry) it.next();
            jar.putNextEntry(new ZipEntry(((String) entry.getKey()).replace('.', '/') + ".class"));
            jar.write((byte[]) entry.getValue());
            jar.closeEntry();
        }
        jar.close();
    }
}
