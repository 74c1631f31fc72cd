/* plain.c: a shared object that registers nothing. */
int plain_answer(void);

int plain_answer(void)
{
    return 42;
}
