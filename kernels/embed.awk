# SPDX-License-Identifier: MIT
# Turns OpenCL C files into one C table: awk -f embed.awk a.cl b.cl > embedded.c
# One string a line, since C promises only 4095 characters a literal.
BEGIN {
    print "/* Made from kernels/ by embed.awk. */"
    print "#include \"kernels/embedded.h\"\n"
    print "const struct tfm__kernel_source tfm__kernel_sources[] = {"
}
FNR == 1 {
    if (NR > 1)
        print "    },"
    name = FILENAME
    sub(/.*\//, "", name)
    printf "    {\"%s\",\n", name
    printf "     \"#line 1 \\\"kernels/%s\\\"\\n\"\n", name
}
{
    gsub(/\\/, "\\\\")
    gsub(/"/, "\\\"")
    gsub(/\t/, "\\t")
    gsub(/\?/, "\\?")
    printf "     \"%s\\n\"\n", $0
}
END {
    if (NR > 0)
        print "    },"
    print "    {0, 0},\n};"
}
