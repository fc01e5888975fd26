# SPDX-License-Identifier: MIT
# Turns OpenCL C files into one C table of their lines: awk -f embed.awk a.cl b.cl > embedded.c
# One literal a line, since C promises only 4095 characters a literal; the #line in front makes a
# build log point at the file.
BEGIN {
    print "/* Made from kernels/ by embed.awk. */"
    print "#include \"kernels/embedded.h\""
    n = 0
}
FNR == 1 {
    if (n > 0)
        print "};"
    name[n] = FILENAME
    sub(/.*\//, "", name[n])
    printf "\nstatic const char *const lines_%d[] = {\n", n
    printf "    \"#line 1 \\\"kernels/%s\\\"\\n\",\n", name[n]
    n++
}
{
    lines[n - 1]++
    gsub(/\\/, "&&")
    out = ""
    for (i = 1; i <= length($0); i++) {
        c = substr($0, i, 1)
        out = out (c == "\"" || c == "?" ? "\\" c : c)
    }
    gsub(/\t/, "    ", out)
    printf "    \"%s\\n\",\n", out
}
END {
    if (n > 0)
        print "};"
    print "\nconst struct tfm__kernel_source tfm__kernel_sources[] = {"
    for (i = 0; i < n; i++)
        printf "    {\"%s\", lines_%d, %d},\n", name[i], i, lines[i] + 1
    print "    {0, 0, 0},\n};"
}
